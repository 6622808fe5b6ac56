import pytest
import torch

from avalanche_f2ocl import F2OCLModel


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
