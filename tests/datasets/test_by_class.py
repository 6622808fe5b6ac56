import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from avalanche_f2ocl.datasets.by_class import ClassFiles, described, files_by_class, fingerprint, hold_out
from avalanche_f2ocl.datasets.image_source import ImageSource


class Listed:
    """An archive of names."""

    def __init__(self, names):
        self.names = names

    def listed(self):
        return list(self.names)

    def bytes(self, name):
        return self.names.index(name)


def source(*names):
    return ImageSource("somewhere", Listed(names))


def classes(found):
    return dict(zip(found.names, found.classes, strict=True))


def test_classes_without_parts():
    found = files_by_class(source("owl/1.JPG", "cat/2.jfif", "cat/1.JPE", "cat/deep/er/3.webp"), "train")
    assert classes(found) == {"cat/1.JPE": "cat", "cat/2.jfif": "cat", "cat/deep/er/3.webp": "cat", "owl/1.JPG": "owl"}
    assert found.names == sorted(found.names) and found.whole and not found.passed_over
    assert files_by_class(source("owl/1.jpg", "cat/2.jpg"), "test").whole


def test_parts():
    names = "train/cat/1.png", "train/cat/a/2.png", "test/cat/3.png", "test/owl/4.png"
    for around in ("", "images/", "a/b/"):
        one, other = (files_by_class(source(*(around + name for name in names)), split) for split in ("train", "test"))
        assert classes(one) == {around + "train/cat/1.png": "cat", around + "train/cat/a/2.png": "cat"}
        assert classes(other) == {around + "test/cat/3.png": "cat", around + "test/owl/4.png": "owl"}
        assert not (one.whole or other.whole or one.passed_over or other.passed_over)


def test_a_folder_around_classes():
    found = files_by_class(source("pets/cat/1.png", "pets/owl/x/2.png", "pets/readme.md", "other.txt"), "train")
    assert classes(found) == {"pets/cat/1.png": "cat", "pets/owl/x/2.png": "owl"}
    assert found.passed_over == ["other.txt", "pets/readme.md"]
    found = files_by_class(source("a/b/cat/1.png", "a/b/owl/2.png"), "train")
    assert set(found.classes) == {"cat", "owl"}


def test_one_class():
    assert files_by_class(source("cat/1.png", "cat/2.png"), "train").classes == ["cat", "cat"]
    assert files_by_class(source("cat/a/1.png", "cat/a/2.png"), "train").classes == ["cat", "cat"]
    assert files_by_class(source("x/train/cat/1.png"), "train").classes == ["cat"]


def test_what_lies_in_no_class_is_passed_over():
    found = files_by_class(source("cat/1.png", "owl/2.png", "stray.png", "notes.txt", "cat/notes.txt"), "train")
    assert found.names == ["cat/1.png", "owl/2.png"]
    assert found.passed_over == ["cat/notes.txt", "notes.txt", "stray.png"]
    names = "train/cat/1.png", "test/cat/2.png", "owl/3.png", "val/cat/4.png", "train/5.png", "test/6.png", "7.png"
    for split in ("train", "test"):
        found = files_by_class(source(*names), split)
        assert len(found.names) == 1
        assert found.passed_over == ["7.png", "owl/3.png", "test/6.png", "train/5.png", "val/cat/4.png"]


def test_a_file_and_a_folder_of_one_name():  # a zip can have both
    found = files_by_class(source("pets", "pets/cat", "pets/cat/1.png", "pets/owl/2.png"), "train")
    assert set(found.classes) == {"cat", "owl"} and found.passed_over == ["pets", "pets/cat"]


def test_two_forms_of_one_name_are_one_class():
    found = files_by_class(source("caf\u00e9/1.png", "cafe\u0301/2.png", "cafe/3.png"), "train")
    assert sorted(found.classes) == ["cafe", "caf\u00e9", "caf\u00e9"]


@pytest.mark.parametrize(
    "names, said",
    [
        ((), "has no images in <class>/ or train/<class>/$"),
        (("1.png", "2.png"), "has no images in <class>/ or train/<class>/$"),
        (("cat/notes.txt",), "has no images in <class>/ or train/<class>/$"),
        (("test/cat/1.png", "test/owl/2.png"), "train/<class>/; it has test/$"),
        (("train/1.png", "test/2.png"), "train/<class>/; it has test/ and train/$"),
    ],
)
def test_no_images_of_a_class(names, said):
    with pytest.raises(ValueError, match=said):
        files_by_class(source(*names), "train")


def test_folder_zip_and_tar_give_the_same(tmp_path):
    for name in ("train/cat/1.png", "train/cat/deep/2.JPG", "train/owl/3.png", "train/stray.png", "test/cat/4.png"):
        path = tmp_path / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    around = shutil.copytree(tmp_path / "images", tmp_path / "around" / "images").parent
    places = [tmp_path / "images"]
    places += [shutil.make_archive(str(tmp_path / kind), kind, tmp_path / "images") for kind in ("zip", "tar")]
    found = [files_by_class(ImageSource(place), "train") for place in places]
    assert found[0] == found[1] == found[2] and found[0].classes == ["cat", "cat", "owl"]
    marks = [fingerprint(ImageSource(place), one) for place, one in zip(places, found, strict=True)]
    deeper = ImageSource(around)
    assert marks == [fingerprint(deeper, files_by_class(deeper, "train"))] * 3


def test_what_a_fingerprint_is():
    listed = source("cat/1.png", "owl/2.png")
    found = files_by_class(listed, "train")
    assert fingerprint(listed, found) == sha256(b"1.png 0\n2.png 1\n").hexdigest()
    assert fingerprint(listed, found) != fingerprint(listed, replace(found, names=["cat/1.png"]))


def test_a_fingerprint_of_what_cannot_be_opened(tmp_path):
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "gone.png").symlink_to(tmp_path / "nowhere")
    (tmp_path / "cat" / "circle.png").symlink_to("circle.png")
    with open(bytes(tmp_path / "cat") + b"/\xff.png", "wb") as file:
        file.write(b"123")
    images = ImageSource(tmp_path)
    found = files_by_class(images, "train")
    assert len(found.names) == 3
    assert fingerprint(images, found) == sha256(b"circle.png -1\ngone.png -1\n\xff.png 3\n").hexdigest()


def files(**counts):
    names = [(f"{name}/{i}.png", name) for name, count in counts.items() for i in range(count)]
    return ClassFiles([name for name, _ in names], [class_name for _, class_name in names], [], [], True)


@pytest.mark.parametrize("share, cat, owl, one", [(0.2, 2, 1, 0), (0.25, 2, 1, 0), (0.01, 1, 1, 0), (0.99, 9, 1, 0)])
def test_a_share_of_each_class_is_held_out(share, cat, owl, one):
    given = files(cat=10, owl=2, one=1)
    rest, held = hold_out(given, share)
    assert sorted(rest + held) == list(range(13)) and rest == sorted(rest) and held == sorted(held)
    assert [given.classes[i] for i in held] == ["cat"] * cat + ["owl"] * owl + ["one"] * one
    assert hold_out(given, share) == (rest, held)


def test_what_is_held_out_of_a_class_depends_on_no_other():
    one, other = (hold_out(given, 0.3)[1] for given in (files(cat=10), files(ant=7, cat=10)))
    assert [i + 7 for i in one] == [i for i in other if i >= 7]
    assert hold_out(files(cat=3), 0) == ([0, 1, 2], [])


def test_a_few_names_stand_for_many():
    assert described([]) == "0 ()" and described(["a"]) == "1 (a)"
    assert described(["a", "b"], 1) == "2 (a, ...)" and described(["a", "b"], 2) == "2 (a, b)"


def test_names_are_those_of_the_disk(tmp_path):
    (tmp_path / "new\nline").mkdir()
    (tmp_path / "new\nline" / "tab\t.png").write_bytes(b"")
    found = files_by_class(ImageSource(Path(tmp_path)), "train")
    assert (found.names, found.classes) == (["new\nline/tab\t.png"], ["new\nline"])
