from dataclasses import replace

import pytest

from avalanche_f2ocl import datasets
from avalanche_f2ocl.datasets import loading, published
from avalanche_f2ocl.datasets.published import Listing, Published, PublishedFiles, text
from tests.datasets.publishing import jpeg, write_archive
from tests.datasets.publishing import published as serve

CONTENTS = {
    "owls/a.jpg": jpeg(10),
    "owls/b.jpg": jpeg(20),
    "owls/names.txt": "0 owl\xe9".encode("latin-1"),
    "c.jpg": b"",
}


def listing(source):
    first, second = source.images
    return Listing({"train": {"0": [first]}, "test": {"0": [second]}}, {})


ABOUT = Published("owls", "http://127.0.0.1:1/owls.tar", 1, "0" * 32, "owls", "of-owls", 1, 2, listing)


@pytest.fixture(params=[".tar", ".zip", ".tgz"])
def about(request, tmp_path):
    with serve(replace(ABOUT, url=f"owls{request.param}"), CONTENTS, tmp_path / "server", 1, 2) as description:
        yield description


def test_every_kind_of_archive(about, tmp_path):
    for _ in range(2):  # downloaded, then there
        files = PublishedFiles(about, str(tmp_path / "data"))
        assert files.names == {"train": ["a.jpg"], "test": ["b.jpg"]} and files.class_names == ["0"]
        assert text(files.source, "names.txt") == "0 owl\ufffd" and text(files.source, "other.txt") == ""
        about = replace(about, url=f"http://127.0.0.1:1/{about.archive}")


def test_avalanches_data_folder_by_default(about, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(published, "data_folder", lambda name: asked.append(name) or tmp_path / "data")
    PublishedFiles(about)
    assert asked == ["of-owls"] and (tmp_path / "data" / about.archive).exists()


def test_a_damaged_archive_is_not_unpacked(about, tmp_path):
    (tmp_path / "data").mkdir()
    write_archive(tmp_path / "data" / about.archive, {"owls/a.jpg": b"other"})
    with pytest.raises(ValueError, match=rf"{about.archive}' is damaged.*expected.*Delete it"):
        PublishedFiles(about, tmp_path / "data")
    assert [path.name for path in (tmp_path / "data").iterdir()] == [about.archive]


@pytest.mark.parametrize("numbers", [dict(images=3), dict(classes=2)], ids=str)
def test_other_contents_are_refused(about, tmp_path, numbers):
    with pytest.raises(ValueError, match="has 2 images in 1 folders of classes, expected are"):
        PublishedFiles(replace(about, **numbers), tmp_path / "data")


def test_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"owls\.tar' nor the folder .*owls' .*download=True.*http://127"):
        PublishedFiles(ABOUT, tmp_path, download=False)
    with pytest.raises(OSError, match=r"http://127.0.0.1:1/owls.tar could not be downloaded.*by hand"):
        PublishedFiles(ABOUT, tmp_path)
    with pytest.raises(TypeError, match="root=3: must be the path of a folder, is int"):
        PublishedFiles(ABOUT, 3)


def test_names():
    assert {name: about.name for name, about in loading.PUBLISHED.items()} == {
        name: name for name in ("cub200", "tiny-imagenet", "imagenet-a")
    }
    with pytest.raises(FileNotFoundError, match="'digits', 'cub200', 'tiny-imagenet', 'imagenet-a', or the path of"):
        datasets.load("cub-200")
