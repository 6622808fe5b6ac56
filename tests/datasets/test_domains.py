import shutil

import pytest
from PIL import Image

from avalanche_f2ocl.datasets.domains import DomainFiles

COUNTS = {
    ("photo", "train", "ant"): 3,
    ("photo", "train", "bee"): 2,
    ("photo", "test", "ant"): 1,
    ("photo", "test", "bee"): 1,
    ("sketch", "train", "ant"): 1,
    ("sketch", "test", "ant"): 2,
}
"""Images by domain, split and class: sketches of bees there are none."""


@pytest.fixture
def folder(tmp_path):
    for (domain, split, name), count in COUNTS.items():
        place = tmp_path / "domains" / domain / split / name
        place.mkdir(parents=True)
        for i in range(count):
            Image.new("L", (6, 5), 10 * i).save(place / f"{i}.png")
    return tmp_path / "domains"


def test_images_by_domain_and_class(folder, tmp_path):
    packed = [shutil.make_archive(str(tmp_path / "packed"), kind, folder) for kind in ("zip", "tar")]
    around = shutil.make_archive(str(tmp_path / "around"), "zip", tmp_path, "domains")
    single = {"photo": folder / "photo", "sketch": folder / "sketch"}
    for dataset in (folder, *packed, around, single):
        files = DomainFiles(dataset)
        assert files.domain_names == ["photo", "sketch"] and files.class_names == ["ant", "bee"]
        assert files.domains["train"].tolist() == [0, 0, 0, 0, 0, 1] and files.domains["test"].tolist() == [0, 0, 1, 1]
        assert files.labels["train"].tolist() == [0, 0, 0, 1, 1, 0] and files.labels["test"].tolist() == [0, 1, 0, 0]
        assert files.groups("train").tolist() == [0, 0, 0, 1, 1, 2]
        levels = [source.pixels(name)[0, 0, 0].item() for source, name in files.chosen("train", files.labels["train"])]
        assert levels == [0, 0, 0, 10, 10, 0]


def test_files_of_no_class_are_known(folder):
    (folder / "sketch" / "notes.txt").write_text("")
    assert DomainFiles(folder).passed_over == ["sketch/notes.txt"]


def test_what_is_missing_is_named(folder):
    shutil.rmtree(folder / "sketch" / "test")
    with pytest.raises(ValueError, match=r"sketch.* has no images in <class>/ or test/<class>/; it has train/"):
        DomainFiles(folder)
    shutil.rmtree(folder / "sketch")
    shutil.rmtree(folder / "photo" / "test" / "bee")
    with pytest.raises(ValueError, match="differ in their classes: .'bee'. are in one of them only"):
        DomainFiles(folder)
    shutil.rmtree(folder / "photo")
    with pytest.raises(ValueError, match="no <domain>/train/<class>/ with images"):
        DomainFiles(folder)
    with pytest.raises(ValueError, match="at least one domain"):
        DomainFiles({})
    with pytest.raises(FileNotFoundError, match="nowhere"):
        DomainFiles({"photo": folder / "nowhere"})
    with pytest.raises(TypeError, match="dataset is list"):
        DomainFiles([folder])


def test_the_same_images_are_not_taken_for_training_and_for_test(folder):
    with pytest.raises(ValueError, match="domain 'photo', .*train', has no train/ and test/"):
        DomainFiles({"photo": folder / "photo" / "train"})


def test_two_domains_of_one_name(folder):
    shutil.copytree(folder / "photo", folder / "more" / "photo")
    with pytest.raises(ValueError, match="two domains of one name"):
        DomainFiles(folder)
