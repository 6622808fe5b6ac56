import hashlib
import tarfile
from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image

from avalanche_f2ocl import class_incremental_stream, datasets
from avalanche_f2ocl.datasets import imagenet_r_files as imagenet_r
from avalanche_f2ocl.datasets.class_folders import decode_all
from avalanche_f2ocl.datasets.imagenet_r_files import ImageNetRFiles
from avalanche_f2ocl.image_fit import ImageFit

COUNTS = {"n01443537": 10, "n02056570": 7, "n12267677": 4}
README = "Labels\n\nn01443537 goldfish\nn02056570 king_penguin\r\nn12267677 acorn\n"


def encoded(i):
    """A JPEG of ``10 i`` everywhere, grey for even i, its size its own."""
    image = Image.new("L" if i % 2 == 0 else "RGB", (20 + i, 30), 10 * i if i % 2 == 0 else (10 * i,) * 3)
    image.save(file := BytesIO(), format="JPEG", quality=100)
    return file.getvalue()


def contents():
    images = {f"{wnid}/art_{i}.jpg": encoded(i) for wnid, count in COUNTS.items() for i in range(count)}
    return {"README.txt": README.encode(), **images}


@pytest.fixture
def publish(tmp_path, monkeypatch):
    """Writes an archive of some files and makes it the published one."""

    def write(files, prefix="imagenet-r/", reverse=False):
        path = tmp_path / "imagenet-r.tar"
        with tarfile.open(path, "w") as archive:
            for name in sorted(files, reverse=reverse):
                member = tarfile.TarInfo(prefix + name)
                member.size = len(files[name])
                archive.addfile(member, BytesIO(files[name]))
        monkeypatch.setattr(imagenet_r, "SIZE", path.stat().st_size)
        monkeypatch.setattr(imagenet_r, "MD5", hashlib.md5(path.read_bytes()).hexdigest())
        return path

    monkeypatch.setattr(imagenet_r, "URL", "http://127.0.0.1:1/imagenet-r.tar")
    monkeypatch.setattr(imagenet_r, "CLASSES", 3)
    monkeypatch.setattr(imagenet_r, "IMAGES", 21)
    return write


@pytest.fixture
def root(publish):
    return publish(contents()).parent


def test_the_published_archive():
    assert (imagenet_r.SIZE, imagenet_r.CLASSES, imagenet_r.IMAGES) == (2191079936, 200, 30000)
    assert imagenet_r.URL.startswith("https://") and len(imagenet_r.MD5) == 32


def test_the_split_is_stratified_disjoint_and_complete(root):
    files = ImageNetRFiles(root)
    assert torch.bincount(files.labels["train"]).tolist() == [8, 6, 3]
    assert torch.bincount(files.labels["test"]).tolist() == [2, 1, 1]
    assert sorted(files.names["train"] + files.names["test"]) == sorted(contents())[1:]
    for split, names in files.names.items():
        assert [sorted(COUNTS).index(name[:9]) for name in names] == files.labels[split].tolist()


def test_the_split_never_changes(root):
    files = ImageNetRFiles(root)
    four = ["n01443537/art_5.jpg", "n01443537/art_9.jpg", "n02056570/art_1.jpg", "n12267677/art_0.jpg"]
    assert files.names["test"] == four


def test_the_split_depends_on_names_and_seed_only(publish):
    names = ImageNetRFiles(publish(contents()).parent).names
    other = {name: b"other content" for name in contents()}
    files = ImageNetRFiles(publish(other, prefix="./imagenet-r/", reverse=True).parent)
    assert files.names == names
    more = {name.replace("n02056570", "n03000000"): content for name, content in contents().items()}
    moved = ImageNetRFiles(publish(more).parent).names["test"]
    assert {n for n in moved if "n03" not in n} == {n for n in names["test"] if "n02" not in n}
    seeded = ImageNetRFiles(publish(contents()).parent, split_seed=1)
    assert seeded.names != names and len(seeded.names["test"]) == 4


def test_images_are_decoded_to_squares(root):
    data, files = datasets.imagenet_r(root, image_size=16), ImageNetRFiles(root)
    assert data.class_names == {0: "goldfish", 1: "king_penguin", 2: "acorn"}
    for part, split in ((data.train, "train"), (data.test, "test")):
        grey = [10 * int(name.split("_")[1].removesuffix(".jpg")) for name in files.names[split]]
        assert part.images.shape == (len(grey), 3, 16, 16) and part.images.dtype == torch.uint8
        assert np.abs(part.images[:, :, 8, 8].int().numpy() - np.array(grey)[:, None]).max() <= 2
        assert part.targets == files.labels[split].tolist()


def test_by_name(root):
    data = datasets.load("imagenet-r", 2, 1, root=root)
    assert data.train.images.shape == (6, 3, 224, 224) and data.test.targets == [0, 1, 2]
    stream = class_incremental_stream("imagenet-r", groups=3, seed=1, image_size=8, root=root)
    assert sorted(len(e.dataset) for e in stream.train_stream) == [3, 6, 8]
    assert stream.class_names[stream.class_order[0]] in ("goldfish", "king_penguin", "acorn")


def test_the_data_folder_is_avalanches_by_default(root, monkeypatch):
    asked, where = [], "avalanche_f2ocl.datasets.imagenet_r_files.data_folder"
    monkeypatch.setattr(where, lambda name: asked.append(name) or root)
    assert ImageNetRFiles().source.path == root / "imagenet-r.tar" and asked == ["imagenet-r"]


def test_a_folder_unpacked_by_hand(root):
    names = ImageNetRFiles(root).names
    with tarfile.open(root / "imagenet-r.tar") as archive:
        archive.extractall(root, filter="data")
    (root / "imagenet-r.tar").unlink()
    files = ImageNetRFiles(root, download=False)
    assert files.source.path == root / "imagenet-r" and files.names == names and files.class_names[0] == "goldfish"
    assert decode_all(files.chosen("test", torch.tensor([0, 3])), ImageFit(16)).shape == (2, 3, 16, 16)
    (root / "imagenet-r" / "README.txt").unlink()
    assert ImageNetRFiles(root).class_names == sorted(COUNTS)
    (root / "imagenet-r" / names["test"][0]).unlink()
    with pytest.raises(ValueError, match="imagenet-r' has 20 images in 3 folders.*expected are 21 in 3: unpack http"):
        ImageNetRFiles(root)


def test_names_that_point_elsewhere_and_links_are_not_followed(root, publish):
    path = publish({**contents(), "../n01443537/evil.jpg": b"x", "n01443537/../evil.jpg": b"x"})
    with tarfile.open(path, "a") as archive:
        link = tarfile.TarInfo("imagenet-r/n01443537/link.jpg")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    imagenet_r.SIZE, imagenet_r.MD5 = path.stat().st_size, hashlib.md5(path.read_bytes()).hexdigest()
    names = ImageNetRFiles(root).names
    assert sorted(names["train"] + names["test"]) == sorted(contents())[1:]
    assert [p.name for p in root.iterdir()] == ["imagenet-r.tar"]


@pytest.mark.parametrize("damage", [lambda content: content[:-1], lambda content: b"x" + content[1:]])
def test_a_damaged_archive_is_named(root, damage):
    path = root / "imagenet-r.tar"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"imagenet-r\.tar' is damaged.*expected.*Delete it"):
        datasets.load("imagenet-r", root=root)
    assert path.exists()


def test_other_contents_are_refused(publish):
    path = publish({name: content for name, content in contents().items() if "n12" not in name})
    with pytest.raises(ValueError, match="has 17 images in 2 folders"):
        ImageNetRFiles(path.parent)


def test_the_archive_is_downloaded(root, tmp_path, monkeypatch):
    monkeypatch.setattr(imagenet_r, "URL", (root / "imagenet-r.tar").as_uri())
    files = ImageNetRFiles(tmp_path / "new")
    assert files.source.path == tmp_path / "new" / "imagenet-r.tar" and len(files.names["test"]) == 4


def test_nothing_there(publish, tmp_path):
    with pytest.raises(OSError, match="http://127.0.0.1:1/imagenet-r.tar could not be downloaded.*by hand"):
        datasets.load("imagenet-r", root=tmp_path)
    with pytest.raises(FileNotFoundError, match="download=True.*http://127.0.0.1:1/imagenet-r.tar"):
        datasets.imagenet_r(tmp_path, download=False)


@pytest.mark.parametrize(
    "options, error",
    [(dict(root=3), TypeError), (dict(split_seed=0.5), TypeError), (dict(train_per_class=0), ValueError)],
    ids=str,
)
def test_bad_arguments(options, error):
    with pytest.raises(error, match=next(iter(options))):
        datasets.imagenet_r(**options)
