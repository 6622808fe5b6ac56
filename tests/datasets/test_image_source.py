from zipfile import ZipFile

import pytest
import torch
from PIL import Image

from avalanche_f2ocl.datasets.image_source import ImageSource


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
    assert source.pixels("1.png", 5).shape == (3, 5, 5) and source.pixels("1.png", 5)[:, 0, 0].tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="cat/notes.txt is no image"):
        source.pixels("cat/notes.txt")


def test_what_is_no_source(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match="no such folder or zip"):
        ImageSource(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="neither a folder nor a zip"):
        ImageSource(folder / "1.png")
