import pickle

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Subset
from torchvision.datasets import FakeData, ImageFolder, VisionDataset
from torchvision.transforms.functional import pil_to_tensor

from avalanche_f2ocl.datasets import load
from avalanche_f2ocl.datasets.reading import UnreadableImage
from avalanche_f2ocl.datasets.torchvision_sets import part_of
from tests.datasets.pictures import grey_16_bits, noise, png, turned_jpeg


@pytest.fixture
def folder(tmp_path):
    """Three images in each of two classes; a plain reader gets the last of either wrong."""
    for number, name in enumerate(("ant/0.png", "ant/1.png", "bee/0.png", "bee/1.png")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(png(noise(4, 6, number)))
    (tmp_path / "ant" / "2.jpg").write_bytes(turned_jpeg()[0])
    (tmp_path / "bee" / "2.png").write_bytes(grey_16_bits()[0])
    return tmp_path


class Drawn(VisionDataset):
    """Noise by number; notes which items are read."""

    def __init__(self, labels, **transforms):
        super().__init__(None, **transforms)
        self.of_items, self.read = labels, []

    def __len__(self):
        return len(self.of_items)

    def __getitem__(self, index):
        self.read.append(index)
        image, label = Image.fromarray(noise(4, 6, index)), self.of_items[index]
        return (image, label) if self.transforms is None else self.transforms(image, label)


def drawn(labels, kept=None, attribute="targets", **transforms):
    """A data set that keeps its labels in an attribute."""
    made = Drawn(labels, **transforms)
    setattr(made, attribute, labels if kept is None else kept)
    return made


def test_an_image_folder_is_read_from_its_files_upright_and_in_8_bits(folder):
    images = ImageFolder(folder)
    part = part_of(images, "train")
    assert [name for _, name in part.images] == [path for path, _ in images.samples]
    assert part.labels == [0, 0, 0, 1, 1, 1] and part.names == ["ant", "bee"]
    seen = [source.pixels(name) for source, name in part.images]
    for index, number in ((0, 0), (1, 1), (3, 2), (4, 3)):
        assert np.array_equal(seen[index], noise(4, 6, number).transpose(2, 0, 1))
    assert np.array_equal(seen[2], turned_jpeg()[1]) and np.array_equal(seen[5], grey_16_bits()[1])


def test_a_damaged_file_of_an_image_folder_is_named(folder):
    path = folder / "bee" / "1.png"
    path.write_bytes(path.read_bytes()[:60])
    images = ImageFolder(folder)
    data = load((images, images), in_memory=False, workers=0, image_size=4)
    with pytest.raises(UnreadableImage, match=r"bee/1\.png' cannot be read as an image"):
        data.test[4]


def resized(image):
    return image.resize((3, 3))


@pytest.mark.parametrize("option", [{"transform": resized}, {"loader": lambda path: Image.new("L", (3, 3), 7)}])
def test_transforms_and_loaders_of_an_image_folder_count(folder, option):
    images = ImageFolder(folder, **option)
    data = load((images, images), in_memory=False, workers=0)
    assert data.train[0][0].shape == (3, 3, 3) and data.train.targets == [0, 0, 0, 1, 1, 1]
    if "transform" in option:
        assert torch.equal(data.train[0][0], pil_to_tensor(resized(Image.fromarray(noise(4, 6)))))
    else:
        assert data.train[5][0].unique().tolist() == [7]


@pytest.mark.parametrize("lazily", [False, True])
def test_a_turned_image_of_an_item_comes_upright(folder, lazily):
    images = ImageFolder(folder, loader=Image.open)
    data = load((images, images), in_memory=not lazily, workers=0, image_size=4, fit="squash")
    upright = Image.fromarray(turned_jpeg()[1].transpose(1, 2, 0)).resize((4, 4), Image.Resampling.BICUBIC)
    assert torch.equal(data.train[2][0], pil_to_tensor(upright))


@pytest.mark.parametrize("attribute", ["targets", "_labels", "labels", "y"])
@pytest.mark.parametrize("kind", [list, np.array, torch.tensor], ids=["list", "array", "tensor"])
def test_labels_are_taken_from_where_they_are_kept(attribute, kind):
    images = drawn([3, 1, 3, 1], kind([3, 1, 3, 1]), attribute)
    part = part_of(images, "train")
    assert part.labels == [3, 1, 3, 1] and sorted(images.read) == [0, 3]


@pytest.mark.parametrize(
    "kept, options",
    [
        ([0, 1, 0], {}),
        (["a", "b", "a", "b"], {}),
        ([[0, 1]] * 4, {}),
        ([1, 1, 0, 0], {}),
        ([5, 5, 5, 5], {"target_transform": lambda label: label}),
        ([3, 9, 9, 1], {"transforms": lambda image, label: (image, label)}),
    ],
    ids=["fewer", "names", "several", "others", "transformed", "transformed with the image"],
)
def test_labels_are_read_from_the_items_where_they_are_not_kept(kept, options):
    images = drawn([3, 1, 3, 1], kept, **options)
    assert part_of(images, "train").labels == [3, 1, 3, 1] and set(images.read) == {0, 1, 2, 3}


def test_names_of_classes_count_where_there_are_enough():
    images = drawn([2, 1])
    assert part_of(images, "train").names is None
    images.classes = ["ant", "bee"]
    assert part_of(images, "train").names is None
    images.classes = ["ant", ("bee", "wasp"), 7]
    assert part_of(images, "train").names == ["ant", "bee, wasp", "7"]
    assert load((images, images)).class_names == {1: "bee, wasp", 2: "7"}


def test_data_sets_that_name_their_classes_differently_do_not_fit():
    train, test = drawn([0, 1]), drawn([0, 1])
    train.classes, test.classes = ["ant", "bee"], ["bee", "ant"]
    with pytest.raises(ValueError, match="name class 0 differently: 'ant' and 'bee'"):
        load((train, test))


def test_fake_data_is_read_item_by_item():
    train, test = (FakeData(12, (3, 5, 6), 2, random_offset=offset) for offset in (0, 100))
    data = load((train, test), in_memory=False, workers=0)
    assert data.train.targets == [train[i][1] for i in range(12)] and data.class_names == {0: "0", 1: "1"}
    assert torch.equal(data.test[7][0], pil_to_tensor(test[7][0]))


def test_a_subset_has_its_own_images(folder):
    images = ImageFolder(folder)
    train, test = Subset(images, [4, 0]), Subset(Subset(images, [3, 1, 0]), torch.tensor([1, 0]))
    data = load((train, test))
    assert data.train.targets == [1, 0] and data.test.targets == [0, 1] and data.class_names == {0: "ant", 1: "bee"}
    for got, number in zip([*data.train.images, *data.test.images], (3, 0, 1, 2), strict=True):
        assert np.array_equal(got, noise(4, 6, number).transpose(2, 0, 1))
    part = part_of(Subset(drawn([0, 1]), [1]), "test")
    assert part.images[0][1] == "test.dataset[1]"  # what its index stands for


def test_a_transform_to_tensors_keeps_them_in_memory_as_they_are():
    images = drawn([0, 1], transform=lambda image: pil_to_tensor(image)[:1].float() / 3)
    assert part_of(images, "train") is None
    data = load((images, images))
    assert torch.equal(data.train.images[1], torch.from_numpy(noise(4, 6, 1)[None, ..., 0]).float() / 3)


def test_other_data_sets_are_left_to_others():
    class Own(torch.utils.data.Dataset):
        def __len__(self):
            raise AssertionError

    assert part_of(Own(), "train") is None
    assert part_of([(Image.new("L", (6, 4)), 0)], "train") is None
    assert part_of(Subset(Own(), [0]), "train") is None
    assert part_of(drawn([]), "train") is None
    with pytest.raises(ValueError, match="empty"):
        load((drawn([0]), drawn([])))


class Damaged(Drawn):
    def __getitem__(self, index):
        if index == self.at:
            raise OSError("broken data stream")
        return super().__getitem__(index) if index != self.tensor else (torch.zeros(3, 4, 6), 0)


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("kept", [True, False])
def test_an_item_that_cannot_be_read_is_named(at, kept):
    images = Damaged([0, 0, 0])
    images.at, images.tensor = at, None
    if kept:
        images.targets = images.of_items
    with pytest.raises(UnreadableImage, match=rf"test\[{at}\] cannot be read as an image \(OSError: broken data str"):
        load((drawn([0]), images))


def test_items_of_several_kinds():
    images = Damaged([0, 0, 0])
    images.at, images.tensor = None, 1
    with pytest.raises(UnreadableImage, match=r"train\[1\] .*image is Tensor, but earlier ones were Pillow's"):
        load((images, images))


@pytest.mark.parametrize("label", [0.5, "1", None, (1, 2)], ids=str)
def test_labels_that_are_no_ids(label):
    with pytest.raises(TypeError, match="class ids must be integers"):
        load((drawn([label]), drawn([label])))


def test_a_source_can_be_sent_to_a_process(folder):
    for images in (ImageFolder(folder), FakeData(2, (3, 5, 6))):
        source, name = part_of(images, "train").images[1]
        assert torch.equal(pickle.loads(pickle.dumps(source)).pixels(name), source.pixels(name))
