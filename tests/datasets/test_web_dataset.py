import json
import pickle
import shutil
import tarfile
from io import BytesIO

import numpy as np
import pytest

from avalanche_f2ocl.datasets import load
from avalanche_f2ocl.datasets.reading import UnreadableImage
from avalanche_f2ocl.datasets.web_dataset import expanded, part_of
from tests.datasets.pictures import noise, png, turned_jpeg


def tar(path, files):
    """A tar of these files; their order is kept."""
    with tarfile.open(path, "w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, BytesIO(data))
    return path


def samples(labels, start=0):
    files = {}
    for key, label in enumerate(labels, start):
        files |= {f"{key:06d}.png": png(noise(4, 6, key)), f"{key:06d}.cls": str(label).encode()}
    return files


def named(part):
    return [name for _, name in part.images]


def test_shards_come_in_the_order_of_the_pattern_and_samples_in_that_of_the_tar(tmp_path):
    for shard in range(3):
        tar(tmp_path / f"train-{shard:03d}.tar", samples([shard, 9], start=2 * shard))
    tar(tmp_path / "test.tar", samples([9, 2, 1, 0]))
    train = f"{tmp_path}/train-{{000..002}}.tar"
    listed = [str(tmp_path / f"train-{shard:03d}.tar") for shard in range(3)]
    for pair in ((train, tmp_path / "test.tar"), [listed, [tmp_path / "test.tar"]]):
        data = load(pair)
        assert data.train.targets == [0, 9, 1, 9, 2, 9] and data.test.targets == [9, 2, 1, 0]
        assert data.class_names == {0: "0", 1: "1", 2: "2", 9: "9"}
        for index in range(6):
            assert np.array_equal(data.train.images[index], noise(4, 6, index).transpose(2, 0, 1))


def test_braces_as_a_shell_has_them():
    assert expanded("a.tar") == ["a.tar"]
    assert expanded("{8..11}") == ["8", "9", "10", "11"]
    assert expanded("{08..11}") == ["08", "09", "10", "11"]
    assert expanded("{0..2}") == ["0", "1", "2"]
    assert expanded("{1..010}")[:2] == ["001", "002"]
    assert expanded("x{a,b}/{1..2}.tar") == ["xa/1.tar", "xa/2.tar", "xb/1.tar", "xb/2.tar"]
    assert expanded("{no braces}") == ["{no braces}"]
    with pytest.raises(ValueError, match=r"\{3\.\.1\} ends before it begins"):
        expanded("train-{3..1}.tar")


def test_a_name_with_braces_that_is_there_is_no_pattern(tmp_path):
    path = tar(tmp_path / "{0..1}.tar", samples([0]))
    assert len(part_of(path).images) == 1


def test_samples_are_grouped_by_what_is_before_the_first_dot(tmp_path):
    image, label = png(noise(4, 6)), b"3"
    files = {"./a/1.seg.png": b"a mask", "./a/1.PNG": image, "./a/1.cls": label, "b/1.x.png": image, "b/1.cls": b"4\n"}
    part = part_of(tar(tmp_path / "0.tar", files | {".hidden.png": image, "._1.cls": b"x", "readme": b""}))
    assert named(part) == ["a/1.PNG", "b/1.x.png"] and part.labels == [3, 4] and not part.passed_over


def test_labels_in_json_are_ids_or_names(tmp_path):
    image = png(noise(4, 6))
    for split, labels in (("train", ["owl", "bee"]), ("test", ["bee", "owl"])):
        files = {}
        for i, label in enumerate(labels):
            files |= {f"{i}.png": image, f"{i}.json": json.dumps({"label": label, "from": "a field"}).encode()}
        tar(tmp_path / f"{split}.tar", files)
    data = load((tmp_path / "train.tar", tmp_path / "test.tar"))
    assert data.train.targets == [1, 0] and data.class_names == {0: "bee", 1: "owl"}
    path = tar(tmp_path / "ids.tar", {"0.json": b'{"label": 7}', "0.png": image, "1.png": image, "1.cls": b" 2 "})
    assert part_of(path).labels == [7, 2]


def test_samples_without_an_image_or_a_label_are_passed_over_with_a_warning(tmp_path):
    more = {"text.txt": b"-", "text.cls": b"1", "bare.png": png(noise(4, 6)), "none.png": b"-", "none.json": b"{}"}
    train, test = tar(tmp_path / "train.tar", samples([0]) | more), tar(tmp_path / "test.tar", samples([0]))
    with pytest.warns(UserWarning, match=r"skipped.*: 3 \(.*train\.tar/text, .*train\.tar/bare, .*train\.tar/none"):
        assert len(load((train, test)).train) == 1


@pytest.mark.parametrize("lazily", [False, True])
def test_a_turned_file_comes_upright(tmp_path, lazily):
    file, seen = turned_jpeg()
    path = tar(tmp_path / "0.tar", {"0.jpg": file, "0.cls": b"0"})
    data = load((path, path), in_memory=not lazily, workers=0)
    assert np.array_equal(data.train[0][0], seen)


def test_an_image_that_cannot_be_read_is_named(tmp_path):
    good, bad = tar(tmp_path / "good.tar", samples([0, 0])), samples([0, 0])
    bad["000001.png"] = bad["000001.png"][:60]
    bad = tar(tmp_path / "bad.tar", bad)
    with pytest.raises(UnreadableImage, match=r"bad\.tar/000001\.png' cannot be read as an image"):
        load((good, bad))
    data = load((good, bad), in_memory=False, workers=0, image_size=4)
    assert data.test[0][0].shape == (3, 4, 4)
    with pytest.raises(UnreadableImage, match=r"bad\.tar/000001\.png' cannot be read as an image"):
        data.test[1]


@pytest.mark.parametrize(
    "files, message",
    [
        ({"0.png": b"-", "0.cls": b"cat"}, r"0\.tar/0\.cls holds b'cat': a label is needed"),
        ({"0.png": b"-", "0.json": b"{"}, r"0\.tar/0\.json holds b'\{'"),
        ({"0.png": b"-", "0.json": b"[1]"}, r"0\.tar/0\.json holds b'\[1\]'"),
        (
            {"0.png": b"-", "0.json": b'{"label": 1.5}'},
            r"0\.tar/0\.json has the label 1\.5: must be an integer or a name",
        ),
        ({"0.png": b"-", "0.json": b'{"label": true}'}, "has the label True"),
        ({"0.txt": b"-"}, r"has no sample of an image and a label, that is <key>\.jpg and <key>\.cls or \.json"),
    ],
    ids=["text", "no json", "no object", "float", "bool", "no sample"],
)
def test_labels_that_are_none(tmp_path, files, message):
    with pytest.raises(ValueError, match=message):
        part_of(tar(tmp_path / "0.tar", files))


def test_what_is_no_tar(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no tar '.*/1\.tar'"):
        tar(tmp_path / "0.tar", samples([0]))
        part_of(f"{tmp_path}/{{0..1}}.tar")
    (tmp_path / "train").mkdir()
    with pytest.raises(ValueError, match="is a folder, but in a pair of paths both must be tars"):
        load((str(tmp_path / "train"), str(tmp_path / "train")))
    packed = shutil.make_archive(str(tmp_path / "packed"), "gztar", tmp_path / "train")
    with pytest.raises(ValueError, match="is no tar, damaged, or compressed as a whole"):
        part_of(packed)


def test_a_source_can_be_sent_to_a_process(tmp_path):
    [(source, name)] = part_of(tar(tmp_path / "0.tar", samples([0]))).images
    assert np.array_equal(pickle.loads(pickle.dumps(source)).pixels(name), source.pixels(name))
