"""Replayed forward passes: on the CPU with a stand-in for CUDA's graphs, on CUDA with themselves."""

import copy
import pickle
import threading
import warnings
import weakref

import pytest
import torch

from avalanche_f2ocl import F2OCLModel, F2OCLStrategy
from avalanche_f2ocl.backbone.cuda_graphs import AFTER, MOST, CapturedCalls
from avalanche_f2ocl.backbone.vit import PromptableViT
from tests.backbone.cuda_stand_in import OnDevice, stand_in
from tests.helpers import train_online

OPTIONS = [
    {},
    {"passes": 2, "keys": 2},
    {"prompt_assignment": "label", "head_features": "z"},
    {"head": "lda", "head_features": "zq", "negatives": "all"},
    {"prompt_assignment": "shared", "head": "ridge", "head_features": "ensemble", "projection": 0},
    {"prompt_assignment": "shared", "head": "lda", "head_features": "layers", "compensate_drift": True},
]


@pytest.fixture
def cuda(monkeypatch):
    return stand_in(monkeypatch)


@pytest.fixture
def calls(cuda):
    return CapturedCalls(device_type="cpu")


def use_graphs(model):
    model.backbone._captured = CapturedCalls(required=True, device_type="cpu")


def captured(cuda):
    """Functions: each has a pool of memory."""
    return len({graph.pool for graph in cuda.graphs})


def double(x, y):
    return (2 * x + y,)


def test_the_stand_in_is_as_treacherous_as_graphs_are(cuda):
    x, graph = torch.ones(2), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.Stream()):
        doubled = 2 * x
    x += 1
    assert doubled.tolist() == [2, 2]
    graph.replay()
    assert doubled.tolist() == [4, 4]
    with torch.cuda.graph(graph, stream=torch.cuda.Stream()), torch.cuda.device(1):
        cuda.tensors_on = 1
        tripled = 3 * x
    x += 1
    graph.replay()
    assert tripled.tolist() == [6, 6] and not graph.launched  # another device's stream was recorded


def test_the_same_shapes_are_captured_when_they_come_again(calls, cuda):
    x, y = torch.ones(2), torch.zeros(2)
    for call in range(AFTER + 3):
        assert calls("double", double, x + call, y)[0].tolist() == [2 + 2 * call] * 2
        assert captured(cuda) == (call >= AFTER)
    assert calls("other", lambda x, y: (x - y,), x, y)[0].tolist() == [1, 1]  # another function of the same shapes
    for other in (torch.ones(3), torch.ones(2, dtype=torch.float64)):
        assert calls("double", double, other, other)[0].tolist() == [3] * len(other)
    assert captured(cuda) == 1


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


def test_one_graph_serves_calls_with_and_without_gradient(calls, cuda):
    for i in range(AFTER + 4):
        y = torch.ones(2, requires_grad=i % 2 == 0)
        with torch.set_grad_enabled(i % 3 != 0):
            (z,) = calls("double", double, torch.ones(2), y)
        assert z.requires_grad == (i % 2 == 0 and i % 3 != 0) and z.tolist() == [3, 3]
    assert captured(cuda) == 1


def test_not_more_graphs_than_allowed(calls, cuda):
    for size in range(1, MOST + 5):
        for _ in range(AFTER + 2):
            assert calls("double", double, torch.ones(size), torch.ones(size))[0].tolist() == [3] * size
    assert captured(cuda) == MOST


def test_other_devices_and_autocast_are_left_alone(cuda):
    calls = CapturedCalls()
    for _ in range(AFTER + 2):
        calls("double", double, torch.ones(2), torch.ones(2))
    calls = CapturedCalls(device_type="cpu")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for _ in range(AFTER + 2):
            calls("double", double, torch.ones(2), torch.ones(2))
    assert not cuda.graphs


def forbidden(x, y):
    torch.cuda.unsafe_call()
    return double(x, y)


class OutOfMemory:
    """A function that needs more than there is when it is called on another stream; weighs what it makes."""

    def __init__(self):
        self.stream, self.made, self.tries = torch.cuda.current_stream(), [], 0

    def __call__(self, x, y):
        made = 2 * x
        if torch.cuda.current_stream() is not self.stream:
            self.tries += 1
            self.made.append(weakref.ref(made))
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return (made + y,)


def call_until_captured(calls, function, x=None):
    x = torch.ones(2) if x is None else x
    for _ in range(AFTER):
        assert calls("function", function, x, x)[0].tolist() == [3, 3]
    return calls("function", function, x, x)


def emptied():
    raise RuntimeError("captures_underway.empty() INTERNAL ASSERT FAILED")  # after a capture that could not be ended


def test_a_capture_that_fails_warns_once_and_leaves_the_stream_as_it_was(calls, cuda, monkeypatch):
    monkeypatch.setattr(torch.cuda, "unsafe_call", cuda.unsafe_call, raising=False)
    stream = torch.cuda.current_stream()
    cuda.on_emptied = emptied
    with pytest.warns(UserWarning, match="due to a previous error during capture"):
        assert call_until_captured(calls, forbidden)[0].tolist() == [3, 3]
    assert torch.cuda.current_stream() is stream
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert calls("function", forbidden, torch.ones(2), torch.ones(2))[0].tolist() == [3, 3]


def test_memory_that_runs_out_in_a_capture_is_given_back_and_not_asked_for_again(calls, cuda):
    function = OutOfMemory()
    cuda.on_emptied = lambda: held.extend(made() for made in function.made)
    held = []
    with pytest.warns(UserWarning, match="out of memory"):
        assert call_until_captured(calls, function)[0].tolist() == [3, 3]
    assert held == [None]  # the cache was emptied when nothing held it any more
    for _ in range(AFTER + 2):
        calls("function", function, torch.ones(2), torch.ones(2))
    assert function.tries == 1


@pytest.mark.parametrize("make", [lambda: forbidden, OutOfMemory])
def test_a_capture_that_is_required_and_fails(cuda, monkeypatch, make):
    monkeypatch.setattr(torch.cuda, "unsafe_call", cuda.unsafe_call, raising=False)
    with pytest.raises(RuntimeError, match="capture=True") as caught:
        call_until_captured(CapturedCalls(True, device_type="cpu"), make())
    # Which would be taken for a mini-batch that is too large, and skipped.
    assert not isinstance(caught.value, torch.cuda.OutOfMemoryError)


def test_a_thread_that_pins_memory_disturbs_no_capture(calls, cuda):
    def beside_a_thread(x, y):
        thread = threading.Thread(target=cuda.unsafe_call)
        thread.start()
        thread.join()
        return double(x, y)

    call_until_captured(calls, beside_a_thread)
    assert captured(cuda) == 1


def test_a_device_that_is_not_the_current_one(cuda):
    cuda.tensors_on, calls = 1, CapturedCalls()
    for call in range(AFTER + 3):
        x = torch.full((2,), float(call)).as_subclass(OnDevice)
        assert calls("double", double, x, torch.ones(2))[0].tolist() == [2 * call + 1] * 2
    assert captured(cuda) == 1 and torch.cuda.current_device() == 0


def test_passes_without_anything_that_has_a_gradient(calls, cuda):
    for call in range(AFTER + 3):
        (z,) = calls("square", lambda x: (x * x,), torch.full((2,), float(call)))
        assert z.tolist() == [call**2] * 2 and not z.requires_grad
    assert len(cuda.graphs) == 1


def test_values_are_forgotten_and_graphs_kept(calls, cuda):
    for _ in range(AFTER + 1):
        y = torch.ones(2, requires_grad=True)
        (z,) = calls("double", double, torch.ones(2), y)
        (2 * z).sum().backward()
    z = calls("double", double, torch.ones(2), y)[0]
    calls.wipe()
    [graph] = calls._graphs.values()
    for tensors in (graph.inputs, graph.outputs, graph.output_grads, graph.grads):
        assert tensors and not any(tensor.any() for tensor in tensors)
    with pytest.raises(RuntimeError, match="overwritten"):
        z.sum().backward()
    assert calls("double", double, torch.ones(2), y)[0].tolist() == [3, 3] and captured(cuda) == 1


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_capture_their_own(calls, cuda, duplicate):
    for _ in range(AFTER + 1):
        calls("double", double, torch.ones(2), torch.ones(2))
    other = duplicate(calls)
    assert other.device_type == "cpu" and not other._graphs and calls._graphs


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


def asks_the_device(x, y):
    assert not torch.cuda.is_current_stream_capturing() or x.sum().item()
    return double(x, y)


def takes_too_much(x, y):
    if torch.cuda.is_current_stream_capturing():
        torch.empty(2 * torch.cuda.mem_get_info()[1], dtype=torch.uint8, device="cuda")
    return double(x, y)


@pytest.mark.gpu
@pytest.mark.parametrize("function", [asks_the_device, takes_too_much])
def test_on_cuda_a_capture_that_fails_leaves_nothing_behind(function):
    calls, x, stream = CapturedCalls(), torch.ones(2, device="cuda"), torch.cuda.current_stream()
    with pytest.warns(UserWarning, match="could not be captured"):
        assert call_until_captured(calls, function, x)[0].tolist() == [3, 3]
    assert torch.cuda.current_stream() == stream
    for call in range(AFTER + 3):  # another one can be captured
        assert calls("double", double, x + call, x)[0].tolist() == [3 + 2 * call] * 2
    assert len([graph for graph in calls._graphs.values() if graph is not None]) == 1


@pytest.mark.gpu
def test_on_cuda_threads_that_pin_memory_disturb_no_capture():
    def beside_a_thread(x, y):
        pinned = threading.Thread(target=lambda: [torch.ones(2**20).pin_memory().cuda(non_blocking=True)] * 3)
        pinned.start()
        pinned.join()
        return double(x, y)

    calls = CapturedCalls(required=True)
    call_until_captured(calls, beside_a_thread, torch.ones(2, device="cuda"))
    assert all(calls._graphs.values())


@pytest.mark.gpu
def test_on_cuda_graphs_forget_and_go_on():
    calls = CapturedCalls(required=True)
    for call in range(AFTER + 4):
        x, y = torch.full((3,), float(call), device="cuda"), torch.ones(3, device="cuda", requires_grad=True)
        (z,) = calls("product", lambda x, y: (x * y,), x, y)
        z.sum().backward()
        assert z.tolist() == y.grad.tolist() == [call] * 3
        calls.wipe()
    [graph] = calls._graphs.values()
    assert not any(tensor.any() for tensor in (*graph.inputs, *graph.outputs, *graph.grads))


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_on_the_second_cuda_device():
    calls = CapturedCalls(required=True)
    for device in ("cuda:0", "cuda:1"):
        for call in range(AFTER + 3):
            x = torch.full((2,), float(call), device=device)
            assert calls("double", double, x, torch.ones_like(x))[0].tolist() == [2 * call + 1] * 2
    assert len(calls._graphs) == 2 and torch.cuda.current_device() == 0
