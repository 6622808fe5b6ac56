"""Replayed forward passes: on the CPU with a stand-in for CUDA's graphs, on CUDA with themselves."""

import copy
import pickle
import warnings

import pytest
import torch

from avalanche_f2ocl import F2OCLModel, F2OCLStrategy
from avalanche_f2ocl.backbone.cuda_graphs import AFTER, MOST, CapturedCalls
from avalanche_f2ocl.backbone.vit import PromptableViT
from tests.helpers import train_online

OPTIONS = [
    {},
    {"passes": 2, "keys": 2},
    {"prompt_assignment": "label", "head_features": "z"},
    {"head": "lda", "head_features": "zq", "negatives": "all"},
    {"prompt_assignment": "shared", "head": "ridge", "head_features": "ensemble", "projection": 0},
    {"prompt_assignment": "shared", "head": "lda", "head_features": "layers", "compensate_drift": True},
]


class StaticPass(torch.autograd.Function):
    """What a replay does: input and output have one place each, and a gradient is that of the last replay."""

    @staticmethod
    def forward(ctx, place, *tensors):
        ctx.place = place
        for own, new in zip(place["inputs"], tensors, strict=True):
            own.data.copy_(new)
        with torch.enable_grad():
            place["results"] = place["function"](*place["inputs"])
        for own, new in zip(place["outputs"], place["results"], strict=True):
            own.copy_(new.detach())
        return tuple(own.detach() for own in place["outputs"])

    @staticmethod
    def backward(ctx, *grads):
        wanted = [own for own in ctx.place["inputs"] if own.requires_grad]
        found = iter(torch.autograd.grad(ctx.place["results"], wanted, grads, allow_unused=True))
        return None, *(next(found) if own.requires_grad else None for own in ctx.place["inputs"])


@pytest.fixture
def graphs(monkeypatch):
    """Stands in for CUDA's graphs on the CPU; holds what was captured."""
    made = []

    def make(function, sample):
        outputs = tuple(torch.empty_like(output) for output in function(*sample))
        place = {"function": function, "inputs": sample, "outputs": [output.detach() for output in outputs]}
        made.append(place)
        return lambda *tensors: StaticPass.apply(place, *tensors)

    monkeypatch.setattr(torch.cuda, "make_graphed_callables", make)
    return made


@pytest.fixture
def calls(graphs):
    return CapturedCalls(device_type="cpu")


def use_graphs(model):
    model.backbone._captured = CapturedCalls(required=True, device_type="cpu")


def double(x, y):
    return (2 * x + y,)


def test_the_stand_in_is_as_treacherous_as_graphs_are(graphs):
    replay = torch.cuda.make_graphed_callables(lambda x: (2 * x,), (torch.ones(2),))
    (first,) = replay(torch.ones(2))
    replay(torch.zeros(2))
    assert first.tolist() == [0, 0]


def test_the_same_shapes_are_captured_when_they_come_again(calls, graphs):
    x, y = torch.ones(2), torch.zeros(2)
    for call in range(AFTER + 3):
        assert calls("double", double, x + call, y)[0].tolist() == [2 + 2 * call] * 2
        assert len(graphs) == (call >= AFTER)
    assert calls("other", lambda x, y: (x - y,), x, y)[0].tolist() == [1, 1]  # another function of the same shapes
    for other in (torch.ones(3), torch.ones(2, dtype=torch.float64)):
        assert calls("double", double, other, other)[0].tolist() == [3] * len(other)
    assert len(graphs) == 1


def test_outputs_outlive_later_replays(calls):
    outputs = [calls("double", double, torch.full((2,), float(i)), torch.zeros(2))[0] for i in range(8)]
    assert [output.tolist() for output in outputs] == [[2.0 * i] * 2 for i in range(8)]


def test_gradients_flow_and_only_to_the_latest_pass(calls):
    for _ in range(AFTER + 2):
        y = torch.ones(2, requires_grad=True)
        (z,) = calls("product", lambda x, y: (x * y,), torch.tensor([2.0, 3.0]), y)
        z.sum().backward()
        assert y.grad.tolist() == [2, 3]
    (early,) = calls("product", lambda x, y: (x * y,), torch.tensor([2.0, 3.0]), y)
    calls("product", lambda x, y: (x * y,), torch.tensor([5.0, 5.0]), y)
    with pytest.raises(RuntimeError, match="capture=False"):
        early.sum().backward()


def test_one_graph_serves_calls_with_and_without_gradient(calls, graphs):
    for i in range(AFTER + 4):
        y = torch.ones(2, requires_grad=i % 2 == 0)
        with torch.set_grad_enabled(i % 3 != 0):
            (z,) = calls("double", double, torch.ones(2), y)
        assert z.requires_grad == (i % 2 == 0 and i % 3 != 0) and z.tolist() == [3, 3]
    assert len(graphs) == 1


def test_not_more_graphs_than_allowed(calls, graphs):
    for size in range(1, MOST + 5):
        for _ in range(AFTER + 2):
            assert calls("double", double, torch.ones(size), torch.ones(size))[0].tolist() == [3] * size
    assert len(graphs) == MOST


def test_other_devices_and_autocast_are_left_alone(graphs):
    calls = CapturedCalls()
    for _ in range(AFTER + 2):
        calls("double", double, torch.ones(2), torch.ones(2))
    calls = CapturedCalls(device_type="cpu")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for _ in range(AFTER + 2):
            calls("double", double, torch.ones(2), torch.ones(2))
    assert not graphs


@pytest.mark.parametrize("required", [True, False])
def test_a_capture_that_fails(monkeypatch, required):
    def fail(*_):
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(torch.cuda, "make_graphed_callables", fail)
    calls = CapturedCalls(required, device_type="cpu")
    x = torch.ones(2)
    for _ in range(AFTER):
        calls("double", double, x, x)
    if required:
        with pytest.raises(RuntimeError, match="not permitted"):
            calls("double", double, x, x)
    else:
        with pytest.warns(UserWarning, match="not permitted"):
            assert calls("double", double, x, x)[0].tolist() == [3, 3]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert calls("double", double, x, x)[0].tolist() == [3, 3]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_capture_their_own(calls, graphs, duplicate):
    for _ in range(AFTER + 1):
        calls("double", double, torch.ones(2), torch.ones(2))
    other = duplicate(calls)
    assert other.device_type == "cpu" and not other._graphs and calls._graphs


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_learning_by_replays_is_learning(graphs, vit, images, labels, options):
    """Mini-batches of changing size, new classes on the way: bit for bit what goes without graphs."""
    plain, replayed = (F2OCLModel(vit, prompt_length=3, capture=False, **options) for _ in range(2))
    use_graphs(replayed)
    for step in range(10):
        count = 5 if step == 6 else 12
        batch = images.flip(0)[:count] if step % 2 else images[:count]
        ids = (labels[:count] + step // 3).tolist()
        plain.learn(batch, ids)
        replayed.learn(batch, ids)
    assert 2 <= len(graphs) <= 3
    for name, value in plain.state_dict().items():
        if not name.startswith("backbone"):
            torch.testing.assert_close(replayed.state_dict()[name], value, rtol=0, atol=0, msg=name)
    torch.testing.assert_close(replayed(images), plain(images), rtol=0, atol=0)


def test_callbacks_of_a_strategy_that_replays(graphs, vit, digits):
    strategies = [F2OCLStrategy(backbone=vit, evaluator=None, prompt_length=3) for _ in range(2)]
    use_graphs(strategies[0].model)
    for strategy in strategies:
        train_online(strategy, digits.train_stream[:2])
        strategy.eval(digits.test_stream[:2])
    assert len(graphs) == 2
    one, other = (strategy.model.pool.prompts for strategy in strategies)
    assert torch.equal(one, other)


def test_graphs_are_forgotten_when_the_weights_move(graphs, vit, images):
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


def test_nothing_is_captured_in_predictions(graphs, vit, images, labels):
    model = F2OCLModel(vit, prompt_length=3)
    use_graphs(model)
    model.learn(images, labels)
    for _ in range(AFTER + 2):
        model.predict(images[:7])
    assert not graphs


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
