import pickle

import pytest
import torch

from avalanche_f2ocl import datasets
from avalanche_f2ocl.datasets import loading
from avalanche_f2ocl.datasets.published import PublishedFiles
from avalanche_f2ocl.datasets.tiny_imagenet import TINY_IMAGENET
from tests.datasets.publishing import jpeg, published, write_archive

WNIDS = ["n02124075", "n01443537", "n04067472"]
VAL = {"val_0.JPEG": "n04067472", "val_1.JPEG": "n02124075", "val_2.JPEG": "n01443537", "val_10.JPEG": "n02124075"}
WORDS = "n00001740\tentity\nn01443537\tgoldfish, Carassius auratus\nn02124075\tEgyptian cat\nn04067472\treel\n"


def contents():
    files = {
        "wnids.txt": "\n".join(WNIDS).encode(),
        "words.txt": WORDS.encode(),
        "val/val_annotations.txt": "".join(f"{name}\t{wnid}\t0\t32\t44\t62\n" for name, wnid in VAL.items()).encode(),
    }
    for number, wnid in enumerate(WNIDS):
        files |= {f"train/{wnid}/images/{wnid}_{i}.JPEG": jpeg(40 * number + 10 * i) for i in range(3)}
        files[f"train/{wnid}/{wnid}_boxes.txt"] = b"0\t0\t1\t1\n"
    files |= {f"val/images/{name}": jpeg(200 + i) for i, name in enumerate(VAL)}
    files |= {f"test/images/test_{i}.JPEG": jpeg(255) for i in range(4)}
    return {"tiny-imagenet-200/": b""} | {f"tiny-imagenet-200/{name}": content for name, content in files.items()}


@pytest.fixture
def about(tmp_path):
    with published(TINY_IMAGENET, contents(), tmp_path / "server", classes=3, images=13) as description:
        yield description


def test_the_published_archive():
    assert (TINY_IMAGENET.size, TINY_IMAGENET.md5) == (248100043, "90528d7ca1a48142e341f4ef8d21d0de")
    assert (TINY_IMAGENET.classes, TINY_IMAGENET.images) == (200, 110_000)


def test_it_is_downloaded_and_read_out_of_the_zip(about, tmp_path):
    files = PublishedFiles(about, tmp_path / "data")
    assert files.class_names == ["goldfish", "Egyptian cat", "reel"]
    assert files.names["train"] == [f"train/{w}/images/{w}_{i}.JPEG" for w in sorted(WNIDS) for i in range(3)]
    assert files.labels["train"].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert files.names["test"] == [f"val/images/val_{i}.JPEG" for i in (2, 1, 10, 0)]
    assert files.labels["test"].tolist() == [0, 1, 1, 2]
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["tiny-imagenet-200.zip"]


def test_by_name(about, tmp_path, monkeypatch):
    monkeypatch.setitem(loading.PUBLISHED, "tiny-imagenet", about)
    data = datasets.load("tiny-imagenet", root=tmp_path / "data")
    assert data.train.images.shape == (9, 3, 30, 20) and len(data.test) == 4
    assert data.train.images[:, 1, 15, 10].int().tolist() == pytest.approx([40, 50, 60, 0, 10, 20, 80, 90, 100], abs=2)
    assert data.test.images[:, 1, 15, 10].int().tolist() == pytest.approx([202, 201, 203, 200], abs=2)
    on_disk = datasets.load("tiny-imagenet", root=tmp_path / "data", in_memory=False)
    assert torch.equal(pickle.loads(pickle.dumps(on_disk.train))[4][0], data.train.images[4])


def test_a_folder_that_is_there_is_used(about, tmp_path):
    names = PublishedFiles(about, tmp_path / "data").names
    for name, content in contents().items():
        if not name.endswith("/"):
            path = tmp_path / "folder" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    files = PublishedFiles(about, tmp_path / "folder", download=False)
    assert files.names == names and files.source.path == tmp_path / "folder" / "tiny-imagenet-200"
    (files.source.path / "words.txt").unlink()
    assert PublishedFiles(about, tmp_path / "folder").class_names == sorted(WNIDS)
    (files.source.path / "val" / "val_annotations.txt").unlink()
    with pytest.raises(ValueError, match="has 9 images in 3 .*expected are 13 in 3: unpack http"):
        PublishedFiles(about, tmp_path / "folder")


def test_parts_with_other_classes_are_refused(tmp_path):
    files = {n: c.replace(b"val_0.JPEG\tn04067472", b"val_0.JPEG\tn02124075") for n, c in contents().items()}
    with published(TINY_IMAGENET, files, tmp_path / "server", classes=3, images=13) as about:
        with pytest.raises(ValueError, match="differ in their classes: .'n04067472'"):
            PublishedFiles(about, tmp_path / "data")


def test_a_damaged_zip_is_named(about, tmp_path):
    (tmp_path / "data").mkdir()
    write_archive(tmp_path / "data" / "tiny-imagenet-200.zip", {"tiny-imagenet-200/words.txt": b""})
    with pytest.raises(ValueError, match=r"tiny-imagenet-200\.zip' is damaged.*Delete it"):
        PublishedFiles(about, tmp_path / "data")
