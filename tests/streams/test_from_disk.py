"""Streams of images on the disk are those of the same images in memory."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

from avalanche_f2ocl import (
    ViTNCM,
    check_rehearsal_free,
    class_incremental_stream,
    long_tailed_stream,
    online_stream,
    recurring_stream,
)
from avalanche_f2ocl.datasets.image_files import FilesOnDisk
from tests.helpers import train_online

MAKE = {
    "groups": lambda folder, **options: class_incremental_stream(folder, groups=2, seed=3, **options),
    "long-tailed": lambda folder, **options: long_tailed_stream(folder, imbalance=3, seed=3, **options),
    "recurring": lambda folder, **options: recurring_stream(folder, groups=2, seed=3, **options),
}


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """Four classes of photographs of several sizes."""
    folder, draw = tmp_path_factory.mktemp("photographs"), np.random.default_rng(0)
    for split, count in (("train", 9), ("test", 3)):
        for name in ("ant", "bee", "cat", "dog"):
            (folder / split / name).mkdir(parents=True)
            for i in range(count):
                pixels = draw.integers(0, 256, (30 + i, 40, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(folder / split / name / f"{i}.png")
    return folder


def mini_batches(stream):
    for mini in online_stream(stream, 10):
        dataset = mini.dataset
        yield from DataLoader(dataset, batch_size=10, collate_fn=dataset.collate_fn)


@pytest.mark.parametrize("name", MAKE)
def test_order_and_bits_are_the_same(photographs, name):
    disk, memory = (MAKE[name](photographs, image_size=32, in_memory=place, workers=1) for place in (False, True))
    assert disk.class_order == memory.class_order and disk.class_names == memory.class_names
    for part in ("train_stream", "test_stream"):
        ours, theirs = getattr(disk, part), getattr(memory, part)
        assert [sorted(e.classes_in_this_experience) for e in ours] == [
            sorted(e.classes_in_this_experience) for e in theirs
        ]
        for _ in range(2):  # a stream may be gone through again
            for one, other in zip(mini_batches(ours), mini_batches(theirs), strict=True):
                assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_strategy_learns_and_predicts_the_same(photographs):
    learned = []
    for place in (False, True):
        stream = MAKE["groups"](photographs, image_size=32, in_memory=place, workers=1)
        strategy = ViTNCM(backbone="micro_vit", evaluator=None, eval_mb_size=5)
        for i, experience in enumerate(stream.train_stream):
            train_online(strategy, [experience])
            strategy.eval(stream.test_stream[: i + 1])
        assert check_rehearsal_free(strategy, stream.train_stream[0].dataset).passed
        learned.append(strategy.model.state_dict())
    assert all(torch.equal(value, learned[1][name]) for name, value in learned[0].items())


def test_nothing_is_read_before_it_is_asked_for(photographs, monkeypatch):
    monkeypatch.setattr("avalanche_f2ocl.datasets.image_source.ImageSource.pixels", None)
    stream = MAKE["groups"](photographs, image_size=32, in_memory=False)
    [data] = stream.train_stream[0].dataset._flat_data._datasets
    assert isinstance(data, FilesOnDisk) and len(data) == 36
