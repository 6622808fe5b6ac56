from pathlib import Path

import numpy as np
import pytest
import torch

from avalanche_f2ocl.datasets.image_source import ImageSource
from avalanche_f2ocl.datasets.listed import ListedPair, Part
from tests.datasets.pictures import noise, png


def part(labels, names=None):
    return Part([(None, f"{i}.png") for i in range(len(labels))], labels, names)


def test_labels_that_are_ids_stay_as_they_are():
    pair = ListedPair(part([7, 2, 7]), part([np.int64(2), torch.tensor(7)]))
    assert pair.labels["train"].tolist() == [7, 2, 7] and pair.labels["test"].tolist() == [2, 7]
    assert pair.labels["train"].dtype == torch.int64 and pair.names_by_label() == {2: "2", 7: "7"}


def test_only_classes_that_there_are_have_names():
    names = ["ant", "bee", "cat", "dog"]
    pair = ListedPair(part([3, 1], names), part([1, 3]))
    assert pair.names_by_label() == {1: "bee", 3: "dog"}


def test_labels_that_are_names_get_ids_in_sorted_order():
    pair = ListedPair(part(["owl", "bee", "cat"]), part(["cat", "owl", "bee", "bee"]))
    assert pair.names_by_label() == {0: "bee", 1: "cat", 2: "owl"}
    assert pair.labels["train"].tolist() == [2, 0, 1] and pair.labels["test"].tolist() == [1, 2, 0, 0]


def test_chosen_images_are_those_of_the_indices():
    pair = ListedPair(part([0, 0, 0]), part([0]))
    assert pair.chosen("train", torch.tensor([2, 0])) == [(None, "2.png"), (None, "0.png")]


def test_the_size_that_images_share(tmp_path):
    for name, height in (("0", 4), ("1", 4), ("2", 5)):
        Path(tmp_path / f"{name}.png").write_bytes(png(noise(height, 6)))
    source = ImageSource(tmp_path)
    images = Part([(source, f"{i}.png") for i in range(3)], [0, 0, 0])
    pair = ListedPair(images, images)
    assert pair.shared_size({"train": torch.tensor([0, 1]), "test": torch.tensor([1])}) == (6, 4)
    assert pair.shared_size({"train": torch.tensor([0, 1]), "test": torch.tensor([2])}) is None


@pytest.mark.parametrize(
    "train, test, error, message",
    [
        (part([]), part([0]), ValueError, "the train part of the pair is empty"),
        (part([0, 1]), part([0, 2]), ValueError, r"differ in their classes: \[1, 2\]"),
        (part(["a", "b"]), part(["a"]), ValueError, r"differ in their classes: \['b'\]"),
        (part([0, 1]), part([1, 0, -1]), ValueError, r"test\[2\] has the label -1: class ids must be at least 0"),
        (part([0, 1]), part(["0", "1"]), TypeError, "label '0': class ids must be integers"),
        (part([0, None]), part([0]), TypeError, "label None"),
        (part([0.0]), part([0]), TypeError, "label 0.0"),
        (part([1], ["ant", "bee"]), part([1], ["ant", "cat"]), ValueError, "name class 1 differently: 'bee' and 'cat'"),
    ],
    ids=["empty", "ids", "names", "no label", "ids and names", "None", "float", "named differently"],
)
def test_parts_that_do_not_fit_together(train, test, error, message):
    with pytest.raises(error, match=message):
        ListedPair(train, test)


def test_names_of_classes_that_there_are_not_may_differ():
    pair = ListedPair(part([1], ["ant", "bee"]), part([1], ["fox", "bee", "cat"]))
    assert pair.names_by_label() == {1: "bee"}
