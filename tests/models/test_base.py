from copy import deepcopy

import pytest
import torch

from avalanche_f2ocl import F2OCLModel, FrozenModel, ViTNCMModel
from avalanche_f2ocl.backbone import PromptableViT
from avalanche_f2ocl.baselines.coda_prompt import CODAPromptModel
from avalanche_f2ocl.baselines.dualprompt import DualPromptModel
from avalanche_f2ocl.baselines.er import ERModel
from avalanche_f2ocl.baselines.l2p import L2PModel
from avalanche_f2ocl.baselines.linear import LinearModel
from avalanche_f2ocl.baselines.lwf import LwFModel
from avalanche_f2ocl.baselines.mvp import MVPModel
from avalanche_f2ocl.baselines.single_prompt import SinglePromptModel
from avalanche_f2ocl.state.row_adam import RowAdam
from avalanche_f2ocl.state.rows import ClassRows
from tests.helpers import assert_same_state, learned

MODELS = [
    F2OCLModel, F2OCLModel.best, FrozenModel, ViTNCMModel,
    LinearModel, ERModel, LwFModel, L2PModel, DualPromptModel, SinglePromptModel, CODAPromptModel, MVPModel,
]  # fmt: skip


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__qualname__)
def test_one_shape_of_constructor(make, vit, images):
    """Backbone by name, module or wrapped; options single or as a config, single ones over it; the rest refused."""
    by_name = make("micro_vit", seed=4, device="cpu")
    config = by_name.config
    position = {"prompt_position": config.prompt_position} if hasattr(config, "prompt_position") else {}
    wrapped = PromptableViT.load("micro_vit", readout=config.readout, **position)
    others = [make(vit, config=config), make(wrapped, config=config), make(wrapped, seed=4), make(vit, seed=4)]
    for other in others:
        assert other.config == config and other.options == by_name.options
        assert_same_state(learned(other), learned(by_name))
    assert make(vit, config=config, seed=5).config.seed == 5
    wrapped = make(PromptableViT(vit, readout="patch", **position))
    assert wrapped.config.readout == wrapped.options["readout"] == wrapped.backbone.readout == "patch"
    for given in ({"readout": "cls"}, {"config": make(vit, readout="cls").config}):
        with pytest.raises(ValueError, match="readout='cls': the given PromptableViT has readout='patch'"):
            make(PromptableViT(vit, readout="patch"), **given)
    with pytest.raises(ValueError, match="image_size=16: a PromptableViT has its own"):
        make(PromptableViT(vit), image_size=16)
    with pytest.raises(TypeError, match="has no option 'sead': did you mean 'seed'"):
        make("micro_vit", sead=1)
    with pytest.raises(TypeError, match="has no option 'xyzzy': there are .*inputs, .*seed"):
        make("micro_vit", xyzzy=1)


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__qualname__)
def test_learn_walks_the_phases(make, vit, images):
    model, walked = make(vit), []
    loss, updates = model.loss, model.updates

    class Watched(type(model)):
        def loss(self, batch):
            walked.append("loss")
            return loss(batch)

        @property
        def updates(self):
            return [lambda batch, u=u: walked.append(u.__name__) or u(batch) for u in updates]

    model.__class__ = Watched
    model.learn(images, [0, 1] * 6)
    assert walked == ["loss"] * model.passes + [update.__name__ for update in updates]
    assert model.passes == (0 if isinstance(model, FrozenModel) else getattr(model.config, "passes", 1))
    assert model.batches == 1


def test_what_is_not_trained_has_no_loss(vit):
    with pytest.raises(NotImplementedError, match="FrozenModel trains nothing"):
        FrozenModel(vit).loss(None)


@pytest.mark.parametrize(
    "spoil, error",
    [
        (lambda x, y: (x[:, :2], y), ValueError),
        (lambda x, y: (x[0], y), ValueError),
        (lambda x, y: (x.float() * float("nan"), y), ValueError),
        (lambda x, y: (x.float(), y), ValueError),
        (lambda x, y: (x, y.float()), TypeError),
        (lambda x, y: (x, y[:-1]), ValueError),
        (lambda x, y: (x[:0], y[:0]), ValueError),
    ],
    ids=["channels", "rank", "NaN", "range", "float labels", "too few labels", "empty"],
)
def test_bad_input_is_refused_before_anything_changes(model, images, labels, spoil, error):
    model.learn(images, labels)
    before = learned(model)
    x, y = spoil(images, labels + 50)
    with pytest.raises(error):
        model.learn(x, y)
    assert_same_state(learned(model), before)


def test_labels_may_be_names(model, images):
    model.learn(images[:3], ["owl", "cat", "owl"])
    model.learn(images[3:5], [7, 0])
    model.learn(images[5:8], ["dog", "cat", "emu"])
    assert model.class_names == {0: "owl", 1: "cat", 8: "dog", 9: "emu"}
    assert sorted(model.class_ids.tolist()) == [0, 1, 7, 8, 9]
    model.forget(1)
    assert model.class_names == {0: "owl", 8: "dog", 9: "emu"}


def test_given_names_keep_their_ids(model, images):
    model.class_names = {3: "cat", 5: "owl"}
    model.learn(images[:3], ["owl", "emu", "cat"])
    assert model.class_names == {3: "cat", 5: "owl", 6: "emu"} and set(model.class_ids.tolist()) == {3, 5, 6}


def test_bad_names_change_nothing(model, images):
    model.learn(images[:2], ["owl", "cat"])
    with pytest.raises(TypeError, match="label 3 among names"):
        model.learn(images[:2], ["emu", 3])
    with pytest.raises(ValueError, match="one class id per image"):
        model.learn(images[:2], ["emu"])
    model.learn_batch = lambda batch: 1 / 0
    with pytest.raises(ZeroDivisionError):
        model.learn(images[:2], ["emu", "owl"])
    assert model.class_names == {0: "owl", 1: "cat"} and len(model.class_ids) == 2


def test_a_move_to_where_it_is_walks_nothing_and_other_moves_do(vit, monkeypatch):
    model, walked = FrozenModel(vit), []
    apply = torch.nn.Module._apply
    monkeypatch.setattr(torch.nn.Module, "_apply", lambda *args: (walked.append(1), apply(*args))[1])
    assert model.to("cpu") is model and model.to(torch.device("cpu")) is model and not walked
    model.to(device="cpu")
    assert walked
    walked.clear()
    model.extra = torch.nn.Linear(2, 2, device="meta")
    with pytest.raises(NotImplementedError, match="meta"):
        model.to("cpu")
    assert walked


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__qualname__)
def test_an_earlier_state_leaves_no_moments_to_classes_that_come_later(make, small_vit, images):
    """A class that is new after it learns as in a model that never saw the classes in between."""
    model, other = make(small_vit), make(small_vit)
    for one in (model, other):
        one.learn(images, [0, 1, 2] * 4)
    if not isinstance(model.optimizer, RowAdam):
        return  # SGD without momentum remembers nothing
    early = deepcopy(model.state_dict())
    for _ in range(3):
        model.learn(images, [3, 4, 2] * 4)
    model.load_state_dict(early)
    for one in (model, other):
        one.learn(images.flip(0), [7] * 12)
    compared = 0
    for part, twin in zip(model.learned_parts(), other.learned_parts(), strict=True):
        for name, parameter in part.named_parameters(recurse=False) if isinstance(part, ClassRows) else ():
            found, expected = model.optimizer.state[parameter], other.optimizer.state[getattr(twin, name)]
            assert found.keys() == expected.keys()
            if found:  # a cosine head has no use for its bias
                assert found["step"][3] == expected["step"][3] == model.passes
                compared += 1
    assert compared or make == F2OCLModel.best  # one prompt for all


def test_a_state_of_other_classes_leaves_them_no_moments(small_vit, images):
    model, other = F2OCLModel(small_vit), F2OCLModel(small_vit)
    model.learn(images, [0, 1, 2] * 4)
    other.learn(images, [0, 8, 9] * 4)
    steps = model.optimizer.state[model.pool.prompts]["step"].clone()
    assert steps[:3].sum() == 1
    model.load_state_dict(other.state_dict())
    assert torch.equal(model.optimizer.state[model.pool.prompts]["step"][:1], steps[:1])
    assert model.optimizer.state[model.pool.prompts]["step"][1:].sum() == 0
    model.load_state_dict(other.state_dict())
    assert torch.equal(model.optimizer.state[model.pool.prompts]["step"][:1], steps[:1])


def test_what_the_optimiser_remembers_goes_where_the_model_goes(small_vit, images, labels):
    model = F2OCLModel(deepcopy(small_vit), prompt_length=2)
    model.learn(images, labels)
    state = model.optimizer.state[model.pool.prompts]
    model.to("meta")
    assert model.device.type == "meta" and state and all(tensor.is_meta for tensor in state.values())


@pytest.mark.gpu
def test_on_cuda_a_model_goes_on_that_began_on_the_cpu(small_vit, images, labels):
    models = [F2OCLModel(deepcopy(small_vit), prompt_length=2) for _ in range(2)]
    for step in range(6):
        for model in models:
            model.learn(images, labels)
        if step == 1:
            models[1].to("cuda")
    assert models[1].device.type == "cuda"
    torch.testing.assert_close(models[1].pool.prompts.cpu(), models[0].pool.prompts, rtol=1e-3, atol=1e-3)
