from copy import deepcopy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import check_estimator
from timm.models import VisionTransformer

from avalanche_f2ocl import F2OCLClassifier, ViTNCMModel, load_model
from avalanche_f2ocl.backbone import vit as backbone


class OfAnyRows(F2OCLClassifier):
    """Takes a row of any numbers for an image one pixel high."""

    def _of_rows(self, rows):
        return 1 / (1 + np.exp(-rows[:, None, :].astype(float)))


@pytest.mark.filterwarnings("ignore")
def test_the_checks_of_scikit_learn(monkeypatch):
    tiny = VisionTransformer(img_size=16, patch_size=8, embed_dim=32, depth=1, num_heads=1, num_classes=0)
    monkeypatch.setattr(backbone, "load_vit", lambda *args: deepcopy(tiny))
    results = check_estimator(OfAnyRows("tiny", method="vit-ridge"), on_fail=None, on_skip=None)
    assert len(results) > 50
    assert {result["check_name"] for result in results if result["status"] == "passed"} > {
        "check_classifiers_train", "check_estimators_partial_fit_n_features", "check_estimators_pickle",
        "check_fit_idempotent", "check_methods_sample_order_invariance", "check_n_features_in_after_fitting",
    }  # fmt: skip
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert not failed


@pytest.fixture
def ncm(small_vit):
    return F2OCLClassifier(small_vit, method="vit-ncm", batch_size=5)


def test_it_learns_and_predicts_as_the_model_it_wraps(ncm, small_vit, images, tmp_path):
    labels = np.array(["owl", "ant", "cat"] * 4)
    assert ncm.fit(images.movedim(1, -1).numpy(), labels) is ncm
    model = ViTNCMModel(deepcopy(small_vit))
    for part in (slice(0, 5), slice(5, 10), slice(10, 12)):
        model.learn(images[part], labels[part].tolist())
    assert ncm.classes_.tolist() == ["ant", "cat", "owl"]
    own = model.predict_proba(images).numpy()
    np.testing.assert_allclose(ncm.predict_proba(images), own[:, [1, 2, 0]], rtol=1e-5)
    expected = [model.class_names[class_id] for class_id in model.predict(images).tolist()]
    assert ncm.predict(images.movedim(1, -1).numpy()).tolist() == expected
    ncm.model_.save(tmp_path / "learned.safetensors")
    assert load_model(tmp_path / "learned.safetensors", small_vit).class_names == {0: "owl", 1: "ant", 2: "cat"}


def test_new_classes_come_with_partial_fit_and_fit_begins_anew(ncm, images):
    ncm.partial_fit(images[:6], [7, -3] * 3).partial_fit(images[6:], [5, 7] * 3)
    assert ncm.classes_.tolist() == [-3, 5, 7] and ncm.predict_proba(images).shape == (12, 3)
    assert ncm.model_.class_names == {0: "7", 1: "-3", 2: "5"}
    assert ncm.fit(images[:2], [1, 2]).classes_.tolist() == [1, 2]


def test_classes_that_are_announced_have_probability_0_until_they_come(ncm, images):
    ncm.partial_fit(images[:6], [7, -3] * 3, classes=[9, 7, -3])
    assert ncm.classes_.tolist() == [-3, 7, 9]
    shares = ncm.predict_proba(images)
    assert (shares[:, 2] == 0).all() and np.allclose(shares.sum(1), 1)
    with pytest.raises(ValueError, match=r"y has labels \[4\] beside classes=\[9, 7, -3\]"):
        ncm.partial_fit(images[:2], [4, 9])
    ncm.partial_fit(images[:6], [9] * 6)
    assert (ncm.predict_proba(images)[:, 2] > 0).all()


def test_rows_go_through_a_pipeline(small_vit):
    digits = load_digits(n_class=3)
    classifier = F2OCLClassifier(small_vit, method="vit-ridge", image_shape=(8, 8), options={"projection": 0})
    pipeline = make_pipeline(MinMaxScaler(clip=True), classifier)
    scores = cross_val_score(pipeline, digits.data[:120], digits.target[:120], cv=2)
    assert scores.min() > 0.8  # an untrained ViT; a third is chance
    rows, pictures = clone(classifier), clone(classifier).set_params(image_shape=None)
    rows.fit(digits.data[:60] / 16, digits.target[:60])
    pictures.fit(digits.images[:60] / 16, digits.target[:60])
    assert np.array_equal(rows.predict_proba(digits.data / 16), pictures.predict_proba(digits.images / 16))


def test_bad_input_changes_nothing(ncm, images):
    with pytest.raises(NotFittedError):
        ncm.predict(images)
    ncm.fit(images[:6], [0, 1, 2] * 2)
    before = ncm.predict_proba(images)
    grey = np.zeros((2, 8, 8))
    for wrong, labels, said in (
        (grey + 3, [0, 1], "float images reach from 3 to 3"),
        (grey, [0, 1, 2], "inconsistent numbers of samples"),
        (grey.reshape(2, 64), [0, 1], r"image_shape=None: must be .* for rows of 64 pixels"),
        (np.zeros((2, 3, 8, 8)), [0, 1], "images have 8 channels"),
        (images[:2], [0.5, 1.5], "Unknown label type"),
    ):
        for learn in (ncm.partial_fit, ncm.fit):
            with pytest.raises(ValueError, match=said):
                learn(wrong, labels)
    assert np.array_equal(ncm.predict_proba(images), before)
    with pytest.raises(ValueError, match="method='nonsense': allowed are 'best'"):
        clone(ncm).set_params(method="nonsense").fit(images[:2], [0, 1])
