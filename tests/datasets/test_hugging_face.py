"""With the library where it is installed, and with a stand-in that has of it what is used."""

import pickle

import numpy as np
import pytest

from avalanche_f2ocl.datasets import hugging_face, load
from avalanche_f2ocl.datasets.reading import UnreadableImage
from tests.datasets.pictures import noise, png, turned_jpeg


class Image:
    def __init__(self, decode=True):
        self.decode = decode


class ClassLabel:
    def __init__(self, names):
        self.names = names


class Value:
    def __init__(self, dtype):
        self.dtype = dtype


class Rows:
    """Some columns; to decode an image is an error."""

    format = {"type": None}

    def __init__(self, columns, features):
        self.columns, self.features = columns, features

    def __len__(self):
        return len(next(iter(self.columns.values())))

    def __getitem__(self, index):
        assert not any(isinstance(f, Image) and f.decode for f in self.features.values()), "decoded"
        return {name: values[index] for name, values in self.columns.items()}

    def with_format(self, kind):
        assert kind is None
        return self

    def select_columns(self, names):
        return Rows({name: self.columns[name] for name in names}, {name: self.features[name] for name in names})

    def cast_column(self, name, feature):
        return Rows(self.columns, self.features | {name: feature})


class Parts(dict):
    def cast_column(self, *_):
        raise AssertionError


for kind in (Rows, Parts):  # where is_hugging_face looks
    kind.__module__ = "datasets.arrow_dataset"


class StandIn:
    Image, ClassLabel, Value, DatasetDict = Image, ClassLabel, Value, Parts
    Features = dict

    class Dataset:
        @staticmethod
        def from_dict(columns, features):
            return Rows(columns, features)


@pytest.fixture(params=["stand-in", "library"])
def hf(request):
    return StandIn if request.param == "stand-in" else pytest.importorskip("datasets", reason="datasets is not there")


def made(hf, labels, files=None, names=("ant", "bee", "cat"), image="image", label="label", more=None):
    """A data set of PNGs, unless other files are given."""
    files = [png(noise(4, 6, seed)) for seed in range(len(labels))] if files is None else files
    values = [
        {"bytes": file, "path": None} if isinstance(file, bytes) else {"bytes": None, "path": file} for file in files
    ]
    kind = hf.Value("string") if isinstance(labels[0], str) else hf.Value("int64")
    features = {image: hf.Image(), label: hf.ClassLabel(names=list(names)) if names else kind} | (more or {})
    columns = {image: values, label: labels} | {name: [0] * len(labels) for name in more or {}}
    return hf.Dataset.from_dict(columns, features=hf.Features(features))


def test_images_labels_and_names_come_in_the_order_of_the_rows(hf):
    train, test = made(hf, [2, 0, 2]), made(hf, [0, 2])
    data = load((train, test))
    assert data.train.targets == [2, 0, 2] and data.test.targets == [0, 2]
    assert data.class_names == {0: "ant", 2: "cat"}
    assert data.train.images.shape == (3, 3, 4, 6)
    for index in range(3):
        assert np.array_equal(data.train.images[index], noise(4, 6, index).transpose(2, 0, 1))


def test_a_dict_of_parts(hf):
    train, test, other = made(hf, [0]), made(hf, [0, 0]), made(hf, [0, 0, 0])
    assert len(load(hf.DatasetDict({"test": test, "validation": other, "train": train})).test) == 2
    assert len(load(hf.DatasetDict({"train": train, "validation": other})).test) == 3
    with pytest.raises(ValueError, match="has the parts 'train', 'unseen': 'train' and 'test' or 'validation'"):
        load(hf.DatasetDict({"train": train, "unseen": test}))


def test_labels_that_are_names_get_ids_in_sorted_order(hf):
    data = load((made(hf, ["owl", "bee"], names=None), made(hf, ["bee", "owl"], names=None)))
    assert data.train.targets == [1, 0] and data.class_names == {0: "bee", 1: "owl"}


def test_labels_without_names(hf):
    data = load((made(hf, [4, 9], names=None, label="labels"), made(hf, [9, 4], names=None, label="labels")))
    assert data.train.targets == [4, 9] and data.class_names == {4: "4", 9: "9"}


@pytest.mark.parametrize("lazily", [False, True])
def test_turned_files_come_upright_from_bytes_and_from_paths(hf, lazily, tmp_path):
    file, seen = turned_jpeg()
    (tmp_path / "turned.jpg").write_bytes(file)
    part = made(hf, [0, 0], [file, str(tmp_path / "turned.jpg")])
    data = load((part, part), in_memory=not lazily, workers=0)
    for index in range(2):
        assert np.array_equal(data.train[index][0], seen)


def test_an_image_that_cannot_be_read_is_named(hf, tmp_path):
    good = png(noise(4, 6))
    whole, damaged = made(hf, [0, 0, 0]), made(hf, [0, 0, 0], [good, good, good[:60]])
    with pytest.raises(UnreadableImage, match=r"test\[2\] cannot be read as an image \(OSError"):
        load((whole, damaged))
    data = load((whole, damaged), in_memory=False, workers=0, image_size=4)
    assert data.test[1][0].shape == (3, 4, 4)
    with pytest.raises(UnreadableImage, match=r"test\[2\]"):
        data.test[2]
    lost = made(hf, [0], [str(tmp_path / "lost.png")])
    with pytest.raises(UnreadableImage, match=r"train\[0\] .*FileNotFoundError.*lost\.png"):
        load((lost, whole))


def test_columns_are_found_by_type_then_by_name(hf):
    def columns(**options):
        part = hugging_face.part_of(made(hf, [1], **options), "train")
        return part.images[0][0].column, list(part.labels)

    assert columns(image="photo", label="kind") == ("photo", [1])
    assert columns(label="fine_label", more={"coarse_label": hf.ClassLabel(names=["a"])}) == ("image", [1])
    assert columns(names=None, label="fine_label", more={"size": hf.Value("int64")}) == ("image", [1])
    with pytest.raises(ValueError, match="train part has 0 columns of type ClassLabel among 'image', 'kind'.*'label'"):
        columns(names=None, label="kind")
    with pytest.raises(ValueError, match="has 2 columns of type ClassLabel among 'image', 'a', 'b'"):
        columns(label="a", more={"b": hf.ClassLabel(names=["c"])})


def test_a_column_of_bytes_without_a_type(hf):
    features = {"img": hf.Value("binary"), "label": hf.Value("int64")}
    part = hf.Dataset.from_dict({"img": [png(noise(4, 6))], "label": [3]}, features=hf.Features(features))
    assert np.array_equal(load((part, part)).train[0][0], noise(4, 6).transpose(2, 0, 1))
    features["img"] = hf.Value("int64")
    part = hf.Dataset.from_dict({"img": [5], "label": [3]}, features=hf.Features(features))
    with pytest.raises(UnreadableImage, match="'img' holds int, neither a file's bytes nor its path"):
        load((part, part))


def test_labels_that_are_kept_secret(hf):
    with pytest.raises(ValueError, match=r"test\[1\] has the label -1"):
        load((made(hf, [0, 1]), made(hf, [0, -1])))


def test_a_transform_is_not_passed_over(monkeypatch, hf):
    part = made(hf, [0])
    if hf is StandIn:
        monkeypatch.setattr(part, "format", {"type": "custom"}, raising=False)
    else:
        part.set_transform(lambda rows: rows)
    with pytest.raises(ValueError, match=r"the train part has a transform.*reset_format\(\)"):
        load((part, made(hf, [0])))


def test_a_source_can_be_sent_to_a_process():
    hf = pytest.importorskip("datasets", reason="datasets is not there")
    part = hugging_face.part_of(made(hf, [0, 1]), "train")
    source = part.images[0][0]
    assert np.array_equal(pickle.loads(pickle.dumps(source)).pixels("train[1]"), source.pixels("train[1]"))


def test_with_the_library_formats_and_selections_are_as_asked_for():
    hf = pytest.importorskip("datasets", reason="datasets is not there")
    part = made(hf, [0, 1, 2]).with_format("numpy").select([2, 0])
    data = load((part, part))
    assert data.train.targets == [2, 0]
    assert np.array_equal(data.train.images[0], noise(4, 6, 2).transpose(2, 0, 1))
    with pytest.raises(TypeError, match="the train part is IterableDataset: load it with streaming=False"):
        load((part.to_iterable_dataset(), part))


def test_what_only_shares_the_librarys_name_is_none_of_its():
    class Own:
        __module__ = "datasets.mine"

    assert not hugging_face.is_hugging_face(Own())
