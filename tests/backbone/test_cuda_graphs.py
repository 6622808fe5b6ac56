"""Replayed forward passes: on the CPU with a stand-in for CUDA's graphs, on CUDA with themselves."""

import copy
import pickle

import pytest
import torch

from avalanche_f2ocl.backbone.cuda_graphs import AFTER, MOST, CapturedCalls
from tests.backbone.cuda_stand_in import OnDevice, captured, double


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
