import os
import pickle
import tarfile
import tracemalloc
import zipfile
from io import BytesIO
from zipfile import ZipFile

import pytest

from avalanche_f2ocl.datasets import archives
from avalanche_f2ocl.datasets.archives import Folder, Inside, Tar, Zip, open_archive

FILES = {"a.txt": b"first", "cat/1.bin": b"second" * 100, "cat/deep/2.bin": b"", "émile/3.bin": b"third"}


@pytest.fixture
def folder(tmp_path):
    for name, contents in FILES.items():
        (tmp_path / "files" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "files" / name).write_bytes(contents)
    return tmp_path / "files"


def zipped(path, files, **options):
    with ZipFile(path, "w", **options) as archive:
        for name, contents in files.items():
            archive.writestr(name, contents)
    return path


def tarred(path, folder):
    with tarfile.open(path, "w") as archive:
        archive.add(folder, ".")
    return path


@pytest.mark.parametrize("kind", ["folder", "zip", "tar"])
@pytest.mark.parametrize("sent", [False, True])
def test_what_holds_files(folder, tmp_path, kind, sent):
    if kind == "zip":
        archive = open_archive(zipped(tmp_path / "a", FILES, compression=zipfile.ZIP_DEFLATED))
    elif kind == "tar":
        archive = open_archive(str(tarred(tmp_path / "a", folder)))
    else:
        archive = open_archive(folder)
    assert type(archive) is {"folder": Folder, "zip": Zip, "tar": Tar}[kind]
    archive = pickle.loads(pickle.dumps(archive)) if sent else archive
    assert sorted(name for name in archive.listed() if not name.endswith("/")) == sorted(FILES)
    for name, contents in FILES.items():
        assert archive.bytes(name) == len(contents)
        with archive.open(name) as file:
            assert file.read() == contents and file.seek(0) == 0
    inside = Inside(archive, "cat/")
    assert sorted(name for name in inside.listed() if name and name[-1] != "/") == ["1.bin", "deep/2.bin"]
    assert inside.bytes("1.bin") == 600 and inside.open("1.bin").read(6) == b"second"


def test_a_process_opens_a_zip_for_itself(tmp_path):
    archive = open_archive(zipped(tmp_path / "a.zip", FILES))
    archive.open("a.txt")
    before = archive._archive
    pid = os.fork()
    if pid == 0:
        os._exit(0 if archive.open("a.txt").read() == b"first" and archive._archive is not before else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0 and archive._archive is before


def test_backslashes_in_a_zip(tmp_path):
    archive = Zip(zipped(tmp_path / "a.zip", {"cat\\1.bin": b"x"}))
    assert archive.listed() == ["cat/1.bin"] and archive.bytes("cat/1.bin") == 1
    assert archive.open("cat/1.bin").read() == b"x"


@pytest.mark.parametrize("where", ["folder", "zip", "tar"])
def test_files_that_are_too_long(folder, tmp_path, monkeypatch, where):
    monkeypatch.setattr(archives, "MAX_BYTES", 599)
    path = {"zip": zipped(tmp_path / "a.zip", FILES), "tar": tarred(tmp_path / "a.tar", folder)}.get(where, folder)
    archive = open_archive(path)
    assert archive.open("émile/3.bin").read() == b"third"
    with pytest.raises(OSError, match="it has 600 bytes, allowed are 599"):
        archive.open("cat/1.bin")


@pytest.mark.parametrize(
    "method, size", [(zipfile.ZIP_DEFLATED, 0x4054321), (zipfile.ZIP_BZIP2, 0x654321), (zipfile.ZIP_LZMA, 0x654321)]
)
def test_a_zip_that_lies_about_a_length_is_not_unpacked_whole(tmp_path, method, size):
    path = zipped(tmp_path / "a.zip", {"bomb": b"\0" * size}, compression=method)
    data, length = path.read_bytes(), (size).to_bytes(4, "little")
    assert data.count(length) == 2  # at the file, and in the list at the end
    path.write_bytes(data.replace(length, (1000).to_bytes(4, "little")))
    archive = open_archive(path)
    tracemalloc.start()
    try:
        with pytest.raises(zipfile.BadZipFile, match="Bad CRC-32"):
            archive.open("bomb")
        if method == zipfile.ZIP_DEFLATED:  # of the others, what 4 KB unpack to is in memory, some 80 MB
            assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_of_compression(tmp_path, method):
    contents = bytes(range(256)) * 1000
    assert Zip(zipped(tmp_path / "a.zip", {"a": contents}, compression=method)).open("a").read() == contents


def spoilt(path, old, new, count):
    data = path.read_bytes()
    assert data.count(old) == count
    path.write_bytes(data.replace(old, new))


def test_members_of_a_zip_that_cannot_be_read(tmp_path):
    path = zipped(tmp_path / "a.zip", FILES, compression=zipfile.ZIP_DEFLATED)
    whole = path.read_bytes()
    for start, end, new in ((6, 8, b"\1\0"), (8, 10, b"\x63\0")):  # encrypted; a method that nobody knows
        data = bytearray(whole)
        first, listed = data.index(b"PK\3\4"), data.index(b"PK\1\2")
        data[first + start : first + end] = data[listed + start + 2 : listed + end + 2] = new
        path.write_bytes(data)
        archive = open_archive(path)
        with pytest.raises((OSError, NotImplementedError), match="it is encrypted$|compression"):
            archive.open("a.txt")
        assert archive.open("cat/1.bin").read() == FILES["cat/1.bin"]
    data = bytearray(whole)
    place = data.index(b"cat/1.bin") + len("cat/1.bin")
    data[place : place + 4] = b"\xff" * 4
    path.write_bytes(data)
    with pytest.raises(Exception, match="Error -3|Bad CRC"):
        open_archive(path).open("cat/1.bin")
    assert open_archive(path).open("a.txt").read() == b"first"


def test_archives_that_are_none(folder, tmp_path):
    zipped(tmp_path / "cut.zip", FILES)
    (tmp_path / "cut.zip").write_bytes((tmp_path / "cut.zip").read_bytes()[:-5])
    tarred(tmp_path / "cut.tar", folder)
    (tmp_path / "cut.tar").write_bytes((tmp_path / "cut.tar").read_bytes()[: 512 * 4])
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.add(folder, ".")
    path = zipped(tmp_path / "name.zip", {"é": b""})  # marked as UTF-8
    spoilt(path, "é".encode(), b"\xff\xff", 2)
    path = zipped(tmp_path / "list.zip", FILES)
    spoilt(path, b"PK\1\2", b"PK\1\3", len(FILES))
    os.mkfifo(tmp_path / "pipe")
    for name, said in (
        ("cut.zip", "neither a folder nor a zip or tar"),
        ("cut.tar", "damaged, or compressed as a whole"),
        ("a.tar.gz", "damaged, or compressed as a whole"),
        ("name.zip", "damaged, or compressed as a whole"),
        ("list.zip", "damaged, or compressed as a whole"),
        ("files/a.txt", "neither a folder nor a zip or tar"),
    ):
        with pytest.raises(ValueError, match=said) as caught:
            open_archive(tmp_path / name)
        assert name in str(caught.value)
    for name in ("nowhere", "pipe"):
        with pytest.raises(FileNotFoundError, match="no such folder, zip or tar"):
            open_archive(tmp_path / name)


def test_a_tar_that_ends_with_a_zip_is_a_tar(folder, tmp_path):
    zipped(folder / "z.zip", {"other": b""})
    assert "z.zip" in open_archive(tarred(tmp_path / "a.tar", folder)).listed()


def test_links_in_a_tar(tmp_path):
    contents = {"cat/1": b"one"}
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name, kind, target in (
            ("cat/early", tarfile.SYMTYPE, "./1"), ("cat/1", tarfile.REGTYPE, ""),
            ("dog/hard", tarfile.LNKTYPE, "cat/1"),
            ("dog/soft", tarfile.SYMTYPE, "../cat/1"), ("dog/twice", tarfile.SYMTYPE, "soft"),
            ("dog/out", tarfile.SYMTYPE, "../../etc/passwd"), ("dog/root", tarfile.SYMTYPE, "/etc/passwd"),
            ("dog/nowhere", tarfile.SYMTYPE, "missing"), ("dog/a", tarfile.SYMTYPE, "b"),
            ("dog/b", tarfile.SYMTYPE, "a"), ("dog/pipe", tarfile.FIFOTYPE, ""),
        ):  # fmt: skip
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.size = kind, target, len(contents.get(name, b""))
            archive.addfile(member, BytesIO(contents.get(name, b"")))
    archive = open_archive(tmp_path / "a.tar")
    for name in ("cat/early", "cat/1", "dog/hard", "dog/soft", "dog/twice"):
        assert archive.open(name).read() == b"one" and archive.bytes(name) == 3
    for name in ("dog/nowhere", "dog/a", "dog/b"):
        assert archive.bytes(name) == 0
        with pytest.raises(OSError, match="link to nothing"):
            archive.open(name)
    assert not {"dog/pipe", "dog/out", "dog/root"} & set(archive.listed())


def test_a_file_with_holes_in_a_tar_is_no_other_files_contents(tmp_path):
    member = tarfile.TarInfo("a")
    member.type = tarfile.GNUTYPE_SPARSE
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.GNU_FORMAT) as archive:
        archive.addfile(member)
        archive.addfile(tarfile.TarInfo("b"))
    with pytest.raises(OSError, match="stored with holes"):
        open_archive(tmp_path / "a.tar").open("a")


def test_links_between_folders_end(folder):
    (folder / "cat" / "up").symlink_to(folder)
    (folder / "cat" / "self").symlink_to("self")
    (folder / "cat" / "gone").symlink_to("nowhere")
    (folder / "also").symlink_to(folder / "cat")
    names = Folder(folder).listed()
    assert "also/1.bin" in names and not any(name.startswith("cat/up/") and name != "cat/up/" for name in names)
    assert {"cat/self", "cat/gone"} <= set(names)
    for name in ("cat/self", "cat/gone"):
        with pytest.raises(OSError):
            Folder(folder).open(name)


def test_folders_that_all_link_to_each_other_have_a_bounded_number_of_names(tmp_path):
    for i in range(8):
        (tmp_path / f"{i}").mkdir()
        (tmp_path / f"{i}" / "x").touch()
        for j in range(8):
            (tmp_path / f"{i}" / f"to{j}").symlink_to(tmp_path / f"{j}")
    assert len(Folder(tmp_path).listed()) < 30_000


def test_a_folder_that_may_not_be_read_counts_as_a_file(folder, monkeypatch):
    def scandir(path):
        if path == folder / "cat/":
            raise PermissionError("not allowed")
        return original(path)

    original = os.scandir
    monkeypatch.setattr(os, "scandir", scandir)
    assert set(Folder(folder).listed()) == {"a.txt", "cat", "émile/", "émile/3.bin"}


def test_what_is_no_ordinary_file_is_not_waited_for(folder):
    os.mkfifo(folder / "pipe.jpg")
    for name in ("pipe.jpg", "cat"):
        with pytest.raises(OSError, match="no ordinary file"):
            Folder(folder).open(name)


def test_names_that_are_no_text(tmp_path):
    (tmp_path / "files").mkdir()
    with open(os.fsencode(tmp_path / "files") + b"/\xff.bin", "wb") as file:
        file.write(b"x")
    for archive in (Folder(tmp_path / "files"), Tar(tarred(tmp_path / "a.tar", tmp_path / "files"))):
        names = [name for name in archive.listed() if name[-1] != "/"]
        assert names == ["\udcff.bin"] and archive.open(names[0]).read() == b"x"
