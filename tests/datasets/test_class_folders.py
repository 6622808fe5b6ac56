import shutil
from zipfile import ZipFile

import numpy as np
import pytest
import torch
from PIL import Image

from avalanche_f2ocl import datasets
from avalanche_f2ocl.datasets.class_folders import ImageFiles, decode_all
from avalanche_f2ocl.image_fit import ImageFit

pytestmark = pytest.mark.filterwarnings("ignore:skipped")


@pytest.fixture
def folder(tmp_path):
    """Two classes, 3 training and 2 test images each, 6 x 5 pixels, in three formats."""
    random = np.random.default_rng(0)
    for split, count in (("train", 3), ("test", 2)):
        for name in ("zebra", "ant"):
            place = tmp_path / "images" / split / name
            place.mkdir(parents=True)
            for i, suffix in zip(range(count), ("png", "webp", "PNG"), strict=False):
                image = Image.fromarray(random.integers(0, 256, (5, 6, 3), dtype=np.uint8))
                image.save(place / f"{i}.{suffix}", **({"lossless": True} if suffix == "webp" else {}))
    (tmp_path / "images" / "train" / "ant" / "notes.txt").write_text("no image")
    return tmp_path / "images"


def zipped(folder):
    return shutil.make_archive(str(folder), "zip", folder)


def test_folder_and_zip_give_the_same(folder):
    one, other = datasets.load(folder), datasets.load(zipped(folder))
    for data in (one, other):
        assert data.class_names == {0: "ant", 1: "zebra"}
        assert data.train.targets == [0, 0, 0, 1, 1, 1] and data.test.targets == [0, 0, 1, 1]
        assert data.train.images.shape == (6, 3, 5, 6) and data.train.images.dtype == torch.uint8
        original = np.array(Image.open(folder / "train" / "zebra" / "1.webp"))
        assert torch.equal(data.train.images[4], torch.from_numpy(original).permute(2, 0, 1))
    assert torch.equal(one.train.images, other.train.images) and torch.equal(one.test.images, other.test.images)


def test_grey_and_transparent_images_become_rgb(folder):
    Image.new("L", (6, 5), 77).save(folder / "test" / "ant" / "0.png")
    Image.new("RGBA", (6, 5), (1, 2, 3, 51)).save(folder / "test" / "ant" / "2.png")
    images = datasets.load(folder).test.images
    # A fifth of the colour over white.
    assert images[0].unique().tolist() == [77] and images[2, :, 0, 0].tolist() == [204, 204, 205]


def test_images_of_different_sizes_become_squares(folder):
    Image.new("RGB", (9, 9)).save(folder / "test" / "ant" / "0.png")
    assert datasets.load(folder).train.images.shape == (6, 3, 224, 224)
    assert datasets.load(folder, image_size=16).train.images.shape == (6, 3, 16, 16)
    files = ImageFiles(folder)
    for fit in ("auto", "crop", "squash", "pad", ImageFit(16, "pad", fill=(0, 0, 0))):
        images = datasets.load(folder, image_size=16, fit=fit).train.images
        expected = fit if isinstance(fit, ImageFit) else ImageFit(16, fit)
        assert torch.equal(images, decode_all(files.chosen("train", torch.arange(6)), expected))


def test_images_of_one_size_upright_stay_as_they_are(folder):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (5, 6)).save(folder / "test" / "ant" / "0.png", exif=exif)
    assert datasets.load(folder).test.images.shape == (4, 3, 5, 6)


def test_only_the_images_kept_are_decoded(folder):
    names = ImageFiles(folder).names["train"]
    kept = datasets.keep_per_class(torch.tensor([0, 0, 0, 1, 1, 1]), 1, "train").tolist()
    (folder / next(name for i, name in enumerate(names) if i not in kept)).write_bytes(b"damaged")
    assert len(datasets.load(folder, train_per_class=1).train) == 2
    with pytest.raises(ValueError, match="cannot be read as an image"):
        datasets.load(folder)


def test_a_truncated_image_is_named(folder):
    path = folder / "train" / "zebra" / "0.png"
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(ValueError, match=r"train/zebra/0\.png' cannot be read as an image"):
        datasets.load(zipped(folder))


@pytest.mark.parametrize("as_zip", [False, True], ids=["folder", "zip"])
@pytest.mark.parametrize(
    "remove, message",
    [
        ("test", "or test/<class>/; it has train/"),
        ("train", "or train/<class>/; it has test/"),
        ("test/ant", "no images in test/ for class ant"),
    ],
)
def test_missing_parts_are_named(folder, remove, message, as_zip):
    shutil.rmtree(folder / remove)
    with pytest.raises(ValueError, match=message):
        datasets.load(zipped(folder) if as_zip else folder)


@pytest.mark.parametrize("as_zip", [False, True], ids=["folder", "zip"])
def test_an_empty_class_is_named(folder, as_zip):
    for split in ("train", "test"):
        (folder / split / "empty").mkdir()
    with pytest.raises(ValueError, match="no images in train/ for class empty"):
        datasets.load(zipped(folder) if as_zip else folder)


def test_no_zip(tmp_path):
    (tmp_path / "data.zip").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="neither a folder nor a zip"):
        datasets.load(tmp_path / "data.zip")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        datasets.load(tmp_path / "nowhere.zip")


def test_names_that_point_elsewhere_are_not_followed(folder, tmp_path):
    path = zipped(folder)
    with ZipFile(path, "a") as archive:
        archive.writestr("../train/ant/evil.png", b"x")
        archive.writestr("train/../evil.png", b"x")
    assert len(datasets.load(path).train) == 6


def test_files_of_no_class_are_named(folder):
    (folder / "extra").mkdir()
    Image.new("RGB", (6, 5)).save(folder / "extra" / "0.png")
    with pytest.warns(UserWarning, match=r"skipped, because .*: 2 \(extra/0.png, train/ant/notes.txt\)"):
        data = datasets.load(folder)
    assert data.class_names == {0: "ant", 1: "zebra"}
