import pytest
import torch

from avalanche_f2ocl import class_incremental_stream, datasets
from avalanche_f2ocl.datasets import loading
from avalanche_f2ocl.datasets.cub200 import CUB200
from avalanche_f2ocl.datasets.published import PublishedFiles
from tests.datasets.publishing import jpeg, published

IMAGES = {
    1: ("001.Black_footed_Albatross/B_0046_18.jpg", 1, 0),
    2: ("001.Black_footed_Albatross/B_0009_34.jpg", 1, 1),
    3: ("001.Black_footed_Albatross/B_0002_55.jpg", 1, 1),
    4: ("002.Brewer_Blackbird/A_0001_1.jpg", 2, 1),
    5: ("002.Brewer_Blackbird/A_0002_2.jpg", 2, 0),
    6: ("010.Red_winged_Blackbird/R_0002_2.jpg", 10, 0),
    7: ("010.Red_winged_Blackbird/R_0001_1.jpg", 10, 1),
}
"""Number: file, class id, whether it is for training."""
CLASSES = ["1 001.Black_footed_Albatross", "10 010.Red_winged_Blackbird", "2 002.Brewer_Blackbird"]


def contents():
    tables = {
        "images.txt": [f"{i} {name}" for i, (name, _, _) in IMAGES.items()],
        "image_class_labels.txt": [f"{i} {label}" for i, (_, label, _) in IMAGES.items()],
        "train_test_split.txt": [f"{i} {training}" for i, (_, _, training) in IMAGES.items()],
        "classes.txt": CLASSES,
    }
    files = {name: "\n".join([*lines, ""]).encode() for name, lines in tables.items()}
    files |= {f"images/{name}": jpeg(30 * i, width=20 + i) for i, (name, _, _) in IMAGES.items()}
    files |= {"images/001.Black_footed_Albatross/._B_0046_18.jpg": b"x", "parts/part_locs.txt": b"1 1 0.0 0.0 0\n"}
    return {"attributes.txt": b"1 has_bill_shape::curved\n"} | {f"CUB_200_2011/{n}": c for n, c in files.items()}


@pytest.fixture
def about(tmp_path):
    with published(CUB200, contents(), tmp_path / "server", classes=3, images=7) as description:
        yield description


def test_the_published_archive():
    assert (CUB200.size, CUB200.md5) == (1150585339, "97eceeb196236b17998738112f37df78")
    assert (CUB200.classes, CUB200.images, CUB200.archive) == (200, 11788, "CUB_200_2011.tgz")


def test_it_is_downloaded_unpacked_and_split_as_published(about, tmp_path):
    files = PublishedFiles(about, tmp_path / "data")
    assert files.class_names == ["Black footed Albatross", "Brewer Blackbird", "Red winged Blackbird"]
    assert files.labels["train"].tolist() == [0, 0, 1, 2] and files.labels["test"].tolist() == [0, 1, 2]
    for split, flag in (("train", 1), ("test", 0)):
        assert set(files.names[split]) == {
            f"images/{name}" for name, _, training in IMAGES.values() if training == flag
        }
        for name, label in zip(files.names[split], files.labels[split].tolist(), strict=True):
            assert name.startswith(("images/001.", "images/002.", "images/010.")[label])
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["CUB_200_2011", "CUB_200_2011.tgz"]


def test_by_name(about, tmp_path, monkeypatch):
    monkeypatch.setitem(loading.PUBLISHED, "cub200", about)
    data = datasets.load("cub200", image_size=8, root=tmp_path / "data")
    assert data.train.images.shape == (4, 3, 8, 8) and data.train.images.dtype == torch.uint8
    # The images of a part by file name; their grey values are those that they were written with.
    assert (data.train.images[:, 0, 4, 4].int() - torch.tensor([90, 60, 120, 210])).abs().max() <= 2
    assert (data.test.images[:, 0, 4, 4].int() - torch.tensor([30, 150, 180])).abs().max() <= 2
    assert data.class_names == {0: "Black footed Albatross", 1: "Brewer Blackbird", 2: "Red winged Blackbird"}
    stream = class_incremental_stream("cub200", groups=3, image_size=8, root=tmp_path / "data")
    assert sorted(len(e.dataset) for e in stream.train_stream) == [1, 1, 2]


def test_a_folder_that_is_there_is_used(about, tmp_path):
    names = PublishedFiles(about, tmp_path / "data").names
    (tmp_path / "data" / "CUB_200_2011.tgz").unlink()
    assert PublishedFiles(about, tmp_path / "data", download=False).names == names


@pytest.mark.parametrize(
    "table, lines, images, classes",
    [
        ("images.txt", None, 0, 0),
        ("train_test_split.txt", ["1 1", "2 0", "3 2"], 2, 1),
        ("image_class_labels.txt", ["1 1", "2 x", "3 11", "4 2"], 2, 2),
        ("classes.txt", CLASSES[:2], 5, 2),
    ],
)
def test_tables_that_lack_images_are_refused(about, tmp_path, table, lines, images, classes):
    PublishedFiles(about, tmp_path / "data")
    path = tmp_path / "data" / "CUB_200_2011" / table
    path.unlink() if lines is None else path.write_text("\n".join(lines))
    with pytest.raises(
        ValueError, match=f"CUB_200_2011' has {images} images in {classes} .*expected are 7 in 3: unpack"
    ):
        PublishedFiles(about, tmp_path / "data")
