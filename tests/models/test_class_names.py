import numpy as np
import pytest

from avalanche_f2ocl import FrozenModel
from avalanche_f2ocl.models.class_names import UnknownClass, checked_names, unknown


@pytest.fixture
def model(small_vit):
    return FrozenModel(small_vit)


def test_one_label_is_that_of_all_images(model, images):
    model.learn(images[:3], "cat")
    model.learn(images[3:5], label="dog")
    model.learn(images[5:6], label=np.int64(7))
    model.learn(images[6:8], 7)
    assert model.class_names == {0: "cat", 1: "dog"} and model.class_counts == {0: 3, 1: 2, 7: 3}


@pytest.mark.parametrize(
    ("labels", "label", "message"),
    [
        (None, None, "give either labels"),
        (["cat"] * 3, "cat", "give either labels"),
        (None, 1.5, "label=1.5: must be a name"),
        (None, ["cat"] * 3, r"label=\['cat', 'cat', 'cat'\]: must be a name"),
        (True, None, "label=True: must be a name"),
        (1.5, None, "class ids must be integers"),
    ],
)
def test_labels_that_are_none(model, images, labels, label, message):
    with pytest.raises(TypeError, match=message):
        model.learn(images[:3], labels, label=label)
    assert len(model.class_ids) == 0


def test_names_in_arrays(model, images):
    model.learn(images[:2], np.array(["cat", "dog"]))
    model.learn(images[2:4], np.array([1, 0]))
    assert model.class_counts == {0: 2, 1: 2} and {type(name) for name in model.class_names.values()} == {str}


def test_one_name_one_class(model, images):
    model.learn(images[:2], ["cat", "dog"])
    with pytest.raises(ValueError, match="'cat' twice, for the ids 0 and 4"):
        model.class_names = {0: "cat", 1: "dog", 4: "cat"}
    assert model.class_names == {0: "cat", 1: "dog"}
    model.class_names[4] = "cat"
    with pytest.raises(ValueError, match="'cat' twice"):
        model.learn(images[:2], ["cat", "owl"])
    assert model.class_counts == {0: 1, 1: 1}


@pytest.mark.parametrize("names", [{"0": "cat"}, {0: 1}, {True: "cat"}, {0: None}])
def test_names_are_strings_by_id(names):
    with pytest.raises(TypeError, match="must be names"):
        checked_names(names)


@pytest.mark.parametrize("which", [1.5, None, True, b"cat"])
def test_a_class_is_a_name_or_an_id(model, images, which):
    model.learn(images[:1], "cat")
    with pytest.raises(TypeError, match="must be a name"):
        model.forget(which)
    for name, error in ((1, TypeError), ("", ValueError)):
        with pytest.raises(error, match="name="):
            model.rename("cat", name)


def test_errors_name_what_was_meant():
    assert str(unknown("kat", ["cat", "dog"])) == "class 'kat' is not known: did you mean 'cat'?"
    assert str(unknown("owl", ["cat", "dog"])) == "class 'owl' is not known: there are 'cat', 'dog'"
    assert str(unknown("owl", [f"class {i}" for i in range(20)])) == "class 'owl' is not known: 20 have a name"
    assert isinstance(unknown("x", []), UnknownClass)


def test_names_of_a_stream_may_repeat(small_vit, digits, monkeypatch):
    from avalanche_f2ocl import ViTNCM

    strategy = ViTNCM(backbone=small_vit, evaluator=None)
    names = dict.fromkeys(range(10), "crane") | {3: "owl"}
    experience = digits.train_stream[0]
    monkeypatch.setattr(experience.origin_stream.benchmark, "class_names", names)
    strategy.train(experience, eval_streams=[])
    strategy.train(experience, eval_streams=[])
    assert strategy.model.class_names[3] == "owl" and strategy.model.class_names[5] == "crane (5)"
