"""Processes that decode give what the caller would have decoded, in its order, and are not waited for."""

import multiprocessing
import os
import signal
import time

import pytest
import torch
from PIL import Image

from avalanche_f2ocl.datasets.decoding import AHEAD, decode, default_workers
from avalanche_f2ocl.datasets.image_source import ImageSource
from avalanche_f2ocl.datasets.reading import UnreadableImage
from avalanche_f2ocl.image_fit import ImageFit

SMALL = ImageFit(4)


@pytest.fixture
def files(tmp_path):
    """Thirty pictures of one colour each; the fifth is damaged."""
    for i in range(30):
        Image.new("RGB", (8 + i, 9), (i, 2 * i, 255 - i)).save(tmp_path / f"{i:02d}.png")
    (tmp_path / "04.png").write_bytes(b"damaged")
    return [(ImageSource(tmp_path), f"{i:02d}.png") for i in range(30)]


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_images_come_in_order(files, workers):
    order = [7, 4, 29, *range(20), 7]
    decoded = list(decode(files, SMALL, order, workers))
    assert len(decoded) == len(order)
    for index, image in zip(order, decoded, strict=True):
        if index == 4:
            assert isinstance(image, UnreadableImage) and image.name.endswith("04.png") and "04.png" in str(image)
        else:
            assert image.shape == (3, 4, 4) and image.dtype == torch.uint8
            assert image[:, 1, 2].tolist() == [index, 2 * index, 255 - index]


def test_sizes_stay_without_a_fit(files):
    assert [image.shape[2] for image in decode(files[10:], None, workers=2)] == list(range(18, 38))


def test_processes_end_with_the_last_image_and_when_nobody_wants_more(files):
    list(decode(files, SMALL, workers=2))
    decoded = decode(files, SMALL, workers=2)
    next(decoded)
    assert len(multiprocessing.active_children()) == 2
    decoded.close()
    assert not multiprocessing.active_children()


def test_only_so_many_are_decoded_ahead(tmp_path):
    class Counted(ImageSource):
        def pixels(self, name, fit=None):
            (tmp_path / f"asked-{name}").touch()
            return torch.zeros(3, 1, 1, dtype=torch.uint8)

    decoded = decode([(Counted(tmp_path), str(i)) for i in range(10 * AHEAD)], None, workers=1)
    next(decoded)
    time.sleep(0.5)
    assert len(list(tmp_path.iterdir())) <= AHEAD + 16
    decoded.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["dead", "stuck"])
def test_a_process_that_fails_is_reported_and_not_waited_for(files, number):
    files, begun = files * 20, time.monotonic()
    decoded = decode(files, SMALL, workers=1, timeout=1)
    next(decoded)
    [process] = multiprocessing.active_children()
    os.kill(process.pid, number)
    with pytest.raises(RuntimeError, match=r"decoding stopped: DataLoader .*may have been at \d\d\.png, .*workers=0"):
        list(decoded)
    assert time.monotonic() - begun < 10 and not process.is_alive()


def test_signals_of_a_terminal_are_left_to_the_caller(files):
    decoded = decode(files * 20, SMALL, workers=1)
    next(decoded)
    [process] = multiprocessing.active_children()
    for number in (signal.SIGINT, signal.SIGHUP):
        os.kill(process.pid, number)
    assert len(list(decoded)) == 599


def test_the_global_generator_is_left_alone(files):
    state = torch.get_rng_state()
    list(decode(files, SMALL, workers=1))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("workers, error", [(-1, ValueError), (1.5, TypeError), (True, TypeError)])
def test_numbers_of_processes(files, workers, error):
    with pytest.raises(error, match="workers"):
        next(decode(files, SMALL, workers=workers))
    assert 1 <= default_workers() <= 4
