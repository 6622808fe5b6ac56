import pytest
import torch

from avalanche_f2ocl import datasets
from avalanche_f2ocl.datasets import loading
from avalanche_f2ocl.datasets.imagenet_a import IMAGENET_A
from avalanche_f2ocl.datasets.published import PublishedFiles
from avalanche_f2ocl.rng import generator
from tests.datasets.publishing import jpeg, published

COUNTS = {"n01498041": 10, "n01819313": 6, "n12267677": 3}
README = "There are 200 classes.\n\nn01498041 stingray\nn01819313 sulphur-crested cockatoo\nn12267677 acorn\n"


@pytest.fixture
def about(tmp_path):
    files = {f"imagenet-a/{w}/0.0{i}.jpg": jpeg(20 * i) for w, count in COUNTS.items() for i in range(count)}
    files["imagenet-a/README.txt"] = README.encode()
    with published(IMAGENET_A, files, tmp_path / "server", classes=3, images=19) as description:
        yield description


def test_the_published_archive():
    assert (IMAGENET_A.size, IMAGENET_A.md5) == (687552512, "c3e55429088dc681f30d81f4726b6595")
    assert (IMAGENET_A.classes, IMAGENET_A.images) == (200, 7500)


def test_it_is_downloaded_and_split_by_class(about, tmp_path):
    files = PublishedFiles(about, tmp_path / "data")
    assert files.class_names == ["stingray", "sulphur-crested cockatoo", "acorn"]
    assert torch.bincount(files.labels["train"]).tolist() == [8, 5, 2]  # 0.8 of 10, 6 and 3, rounded
    assert torch.bincount(files.labels["test"]).tolist() == [2, 1, 1]
    every = [f"{wnid}/0.0{i}.jpg" for wnid, count in COUNTS.items() for i in range(count)]
    assert sorted(files.names["train"] + files.names["test"]) == every
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["imagenet-a.tar"]


def test_the_split_never_changes(about, tmp_path):
    files = PublishedFiles(about, tmp_path / "data")
    expected = []
    for wnid, count in COUNTS.items():
        order = torch.randperm(count, generator=generator(0, f"imagenet-a-split-{wnid}"))
        expected += sorted(f"{wnid}/0.0{i}.jpg" for i in order[round(0.8 * count) :])
    assert files.names["test"] == expected
    assert expected == ["n01498041/0.07.jpg", "n01498041/0.08.jpg", "n01819313/0.00.jpg", "n12267677/0.00.jpg"]


def test_by_name(about, tmp_path, monkeypatch):
    monkeypatch.setitem(loading.PUBLISHED, "imagenet-a", about)
    data = datasets.load("imagenet-a", 2, 1, image_size=8, root=tmp_path / "data")
    assert data.train.images.shape == (6, 3, 8, 8) and data.test.targets == [0, 1, 2]
