import os
import tarfile

import pytest

from avalanche_f2ocl.datasets import unpacking
from avalanche_f2ocl.datasets.unpacking import unpack
from tests.datasets.publishing import write_archive


@pytest.fixture
def path(tmp_path):
    write_archive(tmp_path / "birds.tgz", {"birds/a/1.txt": b"one", "birds/2.txt": bytes(5000), "beside.txt": b"x"})
    return tmp_path / "birds.tgz"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_folder_is_unpacked_and_nothing_else(path):
    unpack(path, path.parent / "birds")
    assert (path.parent / "birds" / "a" / "1.txt").read_bytes() == b"one"
    assert names(path.parent) == ["birds", "birds.tgz"] and names(path.parent / "birds") == ["2.txt", "a"]


@pytest.mark.parametrize(
    "damage", [lambda c: c[: len(c) // 2], lambda c: b"x" + c[1:], lambda c: c[:60] + bytes(20) + c[80:]]
)
def test_a_damaged_archive_leaves_nothing(path, damage):
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"(?s)birds\.tgz' cannot be unpacked .*download it again"):
        unpack(path, path.parent / "birds")
    assert names(path.parent) == ["birds.tgz"]


@pytest.mark.parametrize("name", ["../evil.txt", "birds/../../evil.txt", "link"])
def test_names_that_lead_elsewhere_are_refused(tmp_path, name):
    path = tmp_path / "inner" / "birds.tgz"
    path.parent.mkdir()
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo(name)
        if name == "link":
            member.type, member.linkname = tarfile.SYMTYPE, "/etc"
        archive.addfile(member)
    with pytest.raises(ValueError, match="cannot be unpacked"):
        unpack(path, path.parent / "birds")
    assert names(path.parent) == ["birds.tgz"] and names(tmp_path) == ["inner"]


def test_an_archive_without_the_folder(path):
    with pytest.raises(ValueError, match=r"birds\.tgz' has no folder fish"):
        unpack(path, path.parent / "fish")
    assert names(path.parent) == ["birds.tgz"]


def test_no_room(path, monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "extractall", full)
    with pytest.raises(OSError, match=r"birds\.tgz' could not be unpacked to .*birds' .*No space left"):
        unpack(path, path.parent / "birds")
    assert names(path.parent) == ["birds.tgz"]


def test_the_folder_of_a_quicker_process_stays(path, monkeypatch):
    replace = os.replace

    def late(source, target):
        target.mkdir()
        (target / "theirs.txt").write_text("x")
        replace(source, target)

    monkeypatch.setattr(unpacking.os, "replace", late)
    unpack(path, path.parent / "birds")
    assert names(path.parent / "birds") == ["theirs.txt"] and names(path.parent) == ["birds", "birds.tgz"]


def test_a_folder_that_cannot_get_its_name(path, monkeypatch):
    def refused(source, target):
        raise PermissionError("not allowed")

    monkeypatch.setattr(unpacking.os, "replace", refused)
    with pytest.raises(PermissionError):
        unpack(path, path.parent / "birds")
