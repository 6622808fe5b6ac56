import pytest
import torch

from avalanche_f2ocl import UNKNOWN, F2OCLModel, FrozenModel
from avalanche_f2ocl.baselines.linear import LinearModel

MODELS = {
    "frozen": lambda vit: FrozenModel(vit),
    "frozen-layers": lambda vit: FrozenModel(vit, head="ridge", projection=0, head_features="layers", blocks=1),
    "f2ocl": lambda vit: F2OCLModel(vit, prompt_length=2),
    "shared": lambda vit: F2OCLModel(
        vit, prompt_length=2, prompt_assignment="shared", head_features="ensemble", head="lda", blocks=1
    ),
    "shared-z": lambda vit: F2OCLModel(vit, prompt_length=2, prompt_assignment="shared", head_features="z"),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request, small_vit):
    """Has learned dark images and light ones."""
    draw = torch.Generator().manual_seed(0)
    model = MODELS[request.param](small_vit)
    for _ in range(6):
        model.learn(some(draw), [7, -3] * 6)
    return model


def some(draw):
    noise = torch.randint(0, 30, (12, 3, 32, 32), generator=draw)
    return (noise + torch.tensor([20, 200] * 6).view(-1, 1, 1, 1)).to(torch.uint8)


def test_known_images_get_a_class_and_others_none(model, draw):
    known = some(draw)
    strange = torch.randint(0, 256, (12, 3, 4, 4), dtype=torch.uint8, generator=draw)
    assert (model.predict(strange, reject=0.1) == UNKNOWN).float().mean() > 0.8
    ids = model.predict(known, reject=0.1)
    assert (ids != UNKNOWN).float().mean() > 0.7
    assert torch.equal(ids[ids != UNKNOWN], model.predict(known)[ids != UNKNOWN])


def test_answers_are_those_of_topk(model, draw):
    images = some(draw)
    answers, (ids, probabilities) = model.answers(images, k=2), model.topk(images, k=2)
    assert torch.equal(answers.ids, ids) and torch.equal(answers.probabilities, probabilities)
    assert answers.known.dtype == torch.bool and answers.familiarity.shape == (12,)


def test_familiarity_counts_the_highest_logit_of_heads_that_are_solved(small_vit, draw):
    model = MODELS["frozen-layers"](small_vit)
    for _ in range(12):
        model.learn(some(draw), [7, -3] * 6)
    images = some(draw)
    prediction, familiarity = model.predict_batch(images), model.familiarity
    told = familiarity.scores(prediction.embeddings, prediction.logits.amax(1))
    assert torch.equal(model.answers(images).familiarity, told)
    assert (told <= familiarity.scores(prediction.embeddings)).all() and familiarity.judged[1] > 20


def test_each_image_is_judged_by_itself(model, draw):
    images = some(draw)
    alone = torch.cat([model.answers(image.unsqueeze(0)).familiarity for image in images])
    torch.testing.assert_close(alone, model.answers(images).familiarity, rtol=0, atol=0.01)  # a bin has many images


@pytest.mark.parametrize("reject, error", [(0, ValueError), (1.0, ValueError), ("0.1", TypeError), (True, TypeError)])
def test_a_share_is_above_0_and_below_1(model, draw, reject, error):
    with pytest.raises(error, match="reject="):
        model.predict(some(draw), reject=reject)


def test_what_is_saved_rejects_the_same(small_vit, draw, tmp_path):
    model = MODELS["frozen"](small_vit)
    for _ in range(5):
        model.learn(some(draw), [7, -3] * 6)
    model.save(tmp_path / "learned.safetensors")
    again = FrozenModel.from_file(tmp_path / "learned.safetensors", small_vit)
    images = some(draw)
    assert torch.equal(again.answers(images).familiarity, model.answers(images).familiarity)
    assert again.familiarity.threshold(0.1) == model.familiarity.threshold(0.1)


def test_who_has_learned_too_little_or_knows_nothing_of_it_says_so(small_vit, draw):
    images = some(draw)
    model = MODELS["frozen"](small_vit)
    with pytest.raises(RuntimeError, match="nothing has been learned"):
        model.predict(images, reject=0.1)
    model.learn(images, [7, -3] * 6)
    with pytest.raises(RuntimeError, match="0 images of known classes have been scored"):
        model.predict(images, reject=0.1)
    linear = LinearModel(small_vit)
    linear.learn(images, [0, 1] * 6)
    with pytest.raises(RuntimeError, match="LinearModel cannot tell unknown images"):
        linear.predict(images, reject=0.1)
