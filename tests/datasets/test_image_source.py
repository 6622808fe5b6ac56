import importlib.util
import os
import shutil
import tarfile
from shutil import make_archive
from zipfile import ZipFile

import pytest
import torch
from PIL import Image

from avalanche_f2ocl.datasets import archives
from avalanche_f2ocl.datasets.image_source import ImageSource, normal
from avalanche_f2ocl.datasets.reading import UnreadableImage
from avalanche_f2ocl.image_fit import ImageFit


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "images" / "cat").mkdir(parents=True)
    Image.new("L", (6, 4), 9).save(tmp_path / "images" / "cat" / "2.PNG")
    Image.new("RGB", (6, 4), (1, 2, 3)).save(tmp_path / "images" / "1.png")
    (tmp_path / "images" / "cat" / "notes.txt").write_text("no image")
    (tmp_path / "images" / "owl").mkdir()
    return tmp_path / "images"


def test_what_is_in_a_folder(folder, tmp_path):
    (folder / "linked").symlink_to(folder / "cat", target_is_directory=True)
    source = ImageSource(folder)
    assert source.images == ["1.png", "cat/2.PNG", "linked/2.PNG"]
    assert source.files == ["1.png", "cat/2.PNG", "cat/notes.txt", "linked/2.PNG", "linked/notes.txt"]
    assert source.folders == ["cat", "linked", "owl"]


def test_a_zip_gives_the_same_and_names_that_lead_out_of_it_are_passed_over(folder, tmp_path):
    with ZipFile(tmp_path / "images.zip", "w") as archive:
        for name in ("1.png", "cat/2.PNG", "cat/notes.txt"):
            archive.write(folder / name, name)
        archive.write(folder / "1.png", "../outside.png")
    source = ImageSource(tmp_path / "images.zip")
    assert source.files == ["1.png", "cat/2.PNG", "cat/notes.txt"]
    for name in source.images:
        assert torch.equal(source.pixels(name), ImageSource(folder).pixels(name))


def test_pixels_are_rgb_and_square_where_asked(folder):
    source = ImageSource(folder)
    assert source.pixels("cat/2.PNG").shape == (3, 4, 6) and source.pixels("cat/2.PNG").unique().tolist() == [9]
    square = source.pixels("1.png", ImageFit(image_size=5))
    assert square.shape == (3, 5, 5) and square[:, 0, 0].tolist() == [1, 2, 3]
    assert source.size("1.png") == source.size("cat/2.PNG") == (6, 4)


def test_what_cannot_be_read_is_named(folder, monkeypatch):
    source = ImageSource(folder)
    os.mkfifo(folder / "pipe.jpg")
    (folder / "cut.png").write_bytes((folder / "1.png").read_bytes()[:20])
    (folder / "photo.heic").write_bytes(b"no image")
    (folder / "gone.png").symlink_to("nowhere")
    monkeypatch.setattr(archives, "MAX_BYTES", 10_000)
    (folder / "large.png").write_bytes(bytes(10_001))
    with ZipFile(folder / "nested.jpg", "w") as archive:
        archive.write(folder / "1.png", "1.png")
    for name, why in (
        ("cat/notes.txt", "format is unknown"), ("pipe.jpg", "no ordinary file"), ("gone.png", "No such file"),
        ("cut.png", "Truncated File Read"), ("nowhere.png", "No such file"), ("large.png", "10001 bytes"),
        ("nested.jpg", "format is unknown"),
        ("photo.heic", "package pillow-heif" if importlib.util.find_spec("pillow_heif") is None else "known"),
    ):  # fmt: skip
        for read in (source.pixels, source.size):
            with pytest.raises(UnreadableImage) as caught:
                read(name)
            said = str(caught.value)
            assert said.startswith(f"'{folder / name}' cannot be read as an image (") and why in said
            assert caught.value.name == str(folder / name)


def test_a_package_that_lacks_is_named_only_where_it_would_help(folder, monkeypatch):
    (folder / "photo.heic").write_bytes(bytes(100))
    monkeypatch.setattr(archives, "MAX_BYTES", 99)
    with pytest.raises(UnreadableImage, match="it has 100 bytes"):
        ImageSource(folder).pixels("photo.heic")


def test_what_systems_leave_behind_is_passed_over_without_a_word(folder, tmp_path):
    hidden = (
        ".hidden.png", "cat/._2.PNG", "__MACOSX/cat/._2.PNG",
        ".ipynb_checkpoints/1.png", "cat/.ipynb_checkpoints/1.png",
        "cat/Thumbs.db", "cat/desktop.ini", ".git/1.png", "$RECYCLE.BIN/1.png", "System Volume Information/1.png",
    )  # fmt: skip
    before = ImageSource(folder).files
    for name in hidden:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")
    zipped = ImageSource(make_archive(str(tmp_path / "zipped"), "zip", folder))
    tarred = ImageSource(make_archive(str(tmp_path / "tarred"), "tar", folder))
    assert ImageSource(folder).files == zipped.files == tarred.files == before


def test_names_that_lead_out_of_an_archive(folder, tmp_path):
    names = ("/etc/1.png", "../1.png", "cat/../../3.png", "C:/1.png", "C:\\1.png", "..\\2.png", "cat/3.png")
    with ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in names:
            archive.writestr(name, b"")
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name))
    assert ImageSource(tmp_path / "a.zip").files == ["cat/3.png"]
    assert set(ImageSource(tmp_path / "a.tar").files) == {"cat/3.png", "C:\\1.png"}  # there no more than a name


def test_folder_zip_and_tar_give_the_same(folder, tmp_path):
    sources = [ImageSource(folder)]
    sources += [ImageSource(make_archive(str(tmp_path / kind), kind, folder)) for kind in ("zip", "tar")]
    for source in sources:
        assert source.files == sources[0].files
        for name in source.images:
            assert torch.equal(source.pixels(name), sources[0].pixels(name))
            assert source.size(name) == sources[0].size(name)
            assert source.archive.bytes(name) == sources[0].archive.bytes(name)


def test_names_that_are_no_text(folder):
    shutil.copy(folder / "1.png", os.fsencode(folder) + b"/cat/\xff.png")
    (folder / "cat" / "\xff.jpg").write_bytes(b"")
    source = ImageSource(folder)
    assert source.pixels("cat/\udcff.png").shape == (3, 4, 6)
    os.unlink(os.fsencode(folder) + b"/cat/\xff.png")
    with pytest.raises(UnreadableImage) as caught:
        source.pixels("cat/\udcff.png")
    str(caught.value).encode()  # can be printed anywhere


def test_a_name_is_brought_into_its_composed_form():
    assert normal("cafe\u0301") == normal("caf\u00e9") == "caf\u00e9" and normal("a\udcff") == "a\udcff"


def test_what_is_no_source(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match="no such folder, zip or tar"):
        ImageSource(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="neither a folder nor a zip or tar"):
        ImageSource(folder / "1.png")
