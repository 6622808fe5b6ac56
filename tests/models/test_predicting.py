import pytest
import torch

from avalanche_f2ocl import F2OCLModel, FrozenModel


def test_an_empty_model(model, images):
    assert model(images).shape == (12, 0) and model.class_ids.tolist() == []
    with pytest.raises(RuntimeError, match="nothing has been learned"):
        model.predict(images)
    model.load_state_dict(model.state_dict())


def test_images_of_another_size_grey_or_float(model, images, labels):
    model.learn(images, labels)
    assert torch.equal(model(images), model(images.double() / 255))
    assert model(images[:, :1, :9, :20]).shape == (12, 3)


def test_normalised_inputs(vit, images, labels):
    plain, normalised = F2OCLModel(vit, prompt_length=3), F2OCLModel(vit, prompt_length=3, inputs="normalised")
    plain.learn(images, labels)
    normalised.learn(images.float() / 127.5 - 1, labels)
    torch.testing.assert_close(
        normalised(images.float() / 127.5 - 1), plain(images), rtol=1e-3, atol=1e-3
    )


def test_probabilities_are_those_of_the_learned_temperature(vit, images, labels):
    model = F2OCLModel(vit, prompt_length=3)
    for _ in range(3):
        model.learn(images, labels)
    calibration, logits = model.calibration, model(images)
    expected = (calibration.evened(logits).double() / calibration.temperature()).softmax(1)
    torch.testing.assert_close(model.predict_proba(images).double(), expected, rtol=1e-4, atol=1e-6)
    assert torch.equal(model.topk(images, k=1)[0][:, 0], model.class_ids[logits.argmax(1)])


def test_what_is_saved_gives_the_same_probabilities(vit, images, labels, tmp_path):
    for options in ({"head": "ncm"}, {"head": "ridge", "projection": 0}):
        model = FrozenModel(vit, **options)
        for _ in range(9):
            model.learn(images, labels)
        model.save(tmp_path / "learned.safetensors")
        again = FrozenModel.from_file(tmp_path / "learned.safetensors", vit)
        assert model.calibration.evidence[0] > 0
        assert torch.equal(again.predict_proba(images), model.predict_proba(images))
        again.learn(images, labels)
        model.learn(images, labels)
        assert torch.equal(again.calibration.losses, model.calibration.losses)


def test_embeddings_that_know_their_labels_judge_nothing(vit, images, labels):
    model = F2OCLModel(vit, prompt_length=3, prompt_assignment="label", head_features="z")
    for _ in range(3):
        model.learn(images, labels)
    assert model.calibration.evidence.tolist() == [0, 0]


@pytest.mark.parametrize("options, temperature", [({}, 0.2), ({"temperature": 0.5}, 0.5), ({"head": "lda"}, 1)])
def test_probabilities_are_the_softmax_of_the_logits(vit, images, labels, options, temperature):
    model = F2OCLModel(vit, prompt_length=3, **options)
    model.learn(images, labels)
    logits = model(images).double()
    torch.testing.assert_close(model.predict_proba(images).double(), (logits / temperature).softmax(1))
    torch.testing.assert_close(model.predict_proba(images, temperature=3).double(), (logits / 3).softmax(1))
    ids, probabilities = model.topk(images, k=2)
    order = logits.argsort(1, descending=True)[:, :2]
    assert torch.equal(ids, model.class_ids[order]) and torch.equal(ids[:, 0], model.predict(images))
    torch.testing.assert_close(probabilities, model.predict_proba(images).gather(1, order))
    assert model.topk(images, k=9)[0].shape == (12, 3)


def test_bad_questions(model, images, labels):
    with pytest.raises(RuntimeError, match="nothing has been learned"):
        model.topk(images)
    model.learn(images, labels)
    with pytest.raises(ValueError, match="k=0"):
        model.topk(images, k=0)
    with pytest.raises(ValueError, match="temperature=0"):
        model.predict_proba(images, temperature=0)
