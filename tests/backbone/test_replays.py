"""Models that replay their passes learn what they learn without."""

import copy

import pytest
import torch

from avalanche_f2ocl import F2OCLModel, F2OCLStrategy
from avalanche_f2ocl.backbone.cuda_graphs import AFTER, CapturedCalls
from avalanche_f2ocl.backbone.vit import PromptableViT
from tests.backbone.cuda_stand_in import captured
from tests.helpers import train_online

OPTIONS = [
    {},
    {"passes": 2, "keys": 2},
    {"prompt_assignment": "label", "head_features": "z"},
    {"head": "lda", "head_features": "zq", "negatives": "all"},
    {"prompt_assignment": "shared", "head": "ridge", "head_features": "ensemble", "projection": 0},
    {"prompt_assignment": "shared", "head": "lda", "head_features": "layers", "compensate_drift": True},
]


def use_graphs(model):
    model.backbone._captured = CapturedCalls(required=True, device_type="cpu")


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_learning_by_replays_is_learning(cuda, small_vit, images, labels, options):
    """Mini-batches of changing size, new classes on the way: bit for bit what goes without graphs."""
    plain, replayed = (F2OCLModel(small_vit, prompt_length=3, capture=False, **options) for _ in range(2))
    use_graphs(replayed)
    for step in range(10):
        count = 5 if step == 6 else 12
        batch = images.flip(0)[:count] if step % 2 else images[:count]
        ids = (labels[:count] + step // 3).tolist()
        plain.learn(batch, ids)
        replayed.learn(batch, ids)
    assert 2 <= captured(cuda) <= 3
    graphs = replayed.backbone._captured._graphs.values()
    assert not any(tensor.any() for graph in graphs for tensor in (*graph.inputs, *graph.outputs))
    for name, value in plain.state_dict().items():
        if not name.startswith("backbone"):
            torch.testing.assert_close(replayed.state_dict()[name], value, rtol=0, atol=0, msg=name)
    torch.testing.assert_close(replayed(images), plain(images), rtol=0, atol=0)


def test_callbacks_of_a_strategy_that_replays(cuda, small_vit, digits):
    strategies = [F2OCLStrategy(backbone=small_vit, evaluator=None, prompt_length=3) for _ in range(2)]
    use_graphs(strategies[0].model)
    for strategy in strategies:
        train_online(strategy, digits.train_stream[:2])
        strategy.eval(digits.test_stream[:2])
    assert captured(cuda) == 2
    graphs = strategies[0].model.backbone._captured._graphs.values()
    assert not any(tensor.any() for graph in graphs for tensor in (*graph.inputs, *graph.outputs))
    one, other = (strategy.model.pool.prompts for strategy in strategies)
    assert torch.equal(one, other)


def test_graphs_are_forgotten_when_the_weights_move(cuda, vit, images):
    backbone = PromptableViT(copy.deepcopy(vit))
    backbone._captured = CapturedCalls(device_type="cpu")
    tokens = backbone.tokens(images)
    for _ in range(AFTER + 1):
        backbone.encode_tokens(tokens, replay=True)
    backbone.to("cpu")
    assert backbone._captured._graphs
    backbone.double()
    assert not backbone._captured._graphs
    assert backbone.encode_tokens(tokens.double()).shape == (len(images), 128)


def test_nothing_is_captured_in_predictions(cuda, vit, images, labels):
    model = F2OCLModel(vit, prompt_length=3)
    use_graphs(model)
    model.learn(images, labels)
    for _ in range(AFTER + 2):
        model.predict(images[:7])
    assert not cuda.graphs


def test_capture_is_asked_for_where_it_can_be_had(vit):
    with pytest.raises(ValueError, match="capture=True needs CUDA"):
        F2OCLModel(vit, capture=True)
    with pytest.raises(ValueError, match="capture='always'"):
        F2OCLModel(vit, capture="always")
    assert F2OCLModel(vit, capture=False).backbone._captured is None


@pytest.mark.gpu
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_on_cuda_replays_equal_eager(vit, images, labels, options):
    models = [
        F2OCLModel(copy.deepcopy(vit), device="cuda", precision="float32", prompt_length=3, capture=capture, **options)
        for capture in (False, True)
    ]
    for step in range(10):
        count = 5 if step == 6 else 12
        for model in models:
            model.learn(images[:count], (labels[:count] + step // 3).tolist())
    assert models[1].backbone._captured._graphs
    torch.testing.assert_close(models[1].pool.prompts, models[0].pool.prompts, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(models[1](images), models[0](images), rtol=1e-2, atol=1e-2)
