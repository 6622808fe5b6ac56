"""Passes that cannot be captured go on without graphs, and nothing stays behind."""

import threading
import warnings
import weakref

import pytest
import torch

from avalanche_f2ocl.backbone.cuda_graphs import AFTER, CapturedCalls
from tests.backbone.cuda_stand_in import captured, double


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
