import json
import os
import struct

import pytest
import torch

from avalanche_f2ocl.safe_file import read_safe_file, tensors_sha256, write_safe_file

TENSORS = {
    "a": torch.arange(6.0).view(2, 3),
    "b": torch.tensor([1, -2]),
    "none": torch.zeros(0, 4, dtype=torch.float64),
    "half": torch.ones(3, dtype=torch.bfloat16),
    "scalar": torch.tensor(7),
}
VALUES = {"text": "ä\n", "list": [1, None, 2.5], "flag": True}


@pytest.fixture
def path(tmp_path):
    write_safe_file(tmp_path / "file.safetensors", TENSORS, VALUES)
    return tmp_path / "file.safetensors"


def test_what_is_written_is_read(path):
    tensors, values = read_safe_file(path)
    assert values == VALUES and tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert torch.equal(tensors[name], tensor) and tensors[name].dtype == tensor.dtype
    assert os.listdir(path.parent) == [path.name]


def test_views_and_shared_memory_are_written(tmp_path):
    whole = torch.arange(10.0)
    write_safe_file(tmp_path / "f", {"one": whole[:4], "other": whole[2:6], "transposed": whole.view(2, 5).T}, {})
    tensors, _ = read_safe_file(tmp_path / "f")
    assert torch.equal(tensors["other"], whole[2:6]) and torch.equal(tensors["transposed"], whole.view(2, 5).T)


def test_every_flipped_bit_is_found(path, tmp_path):
    good = path.read_bytes()
    bad = tmp_path / "bad"
    for position in range(len(good)):
        spoilt = bytearray(good)
        spoilt[position] ^= 1 << position % 8
        bad.write_bytes(spoilt)
        with pytest.raises(ValueError, match="damaged"):
            read_safe_file(bad)


def test_every_truncation_is_found(path, tmp_path):
    good = path.read_bytes()
    for length in range(0, len(good), 7):
        (tmp_path / "bad").write_bytes(good[:length])
        with pytest.raises(ValueError, match="damaged"):
            read_safe_file(tmp_path / "bad")


@pytest.mark.parametrize("size", [2**63 - 1, 2**40, 0, 100])
def test_a_header_that_declares_too_much(path, size):
    path.write_bytes(struct.pack("<Q", size) + path.read_bytes()[8:])
    with pytest.raises(ValueError, match="damaged"):
        read_safe_file(path)


def test_a_tensor_that_declares_too_much(tmp_path):
    header = {"a": {"dtype": "F64", "shape": [2**40, 2**10], "data_offsets": [0, 2**53]}}
    text = json.dumps(header).encode()
    (tmp_path / "f").write_bytes(struct.pack("<Q", len(text)) + text + b"\0" * 64)
    with pytest.raises(ValueError, match="damaged"):
        read_safe_file(tmp_path / "f")


def test_other_kinds_of_file(tmp_path):
    torch.save({"a": torch.zeros(2)}, tmp_path / "pickle")
    (tmp_path / "text").write_text("no tensors")
    (tmp_path / "empty").write_bytes(b"")
    for name in ("pickle", "text", "empty"):
        with pytest.raises(ValueError, match=f"{name}' is damaged or was not written by"):
            read_safe_file(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="missing"):
        read_safe_file(tmp_path / "missing")


@pytest.mark.parametrize("step", ["save_file", "_to_disk", "os.replace"])
def test_a_failed_write_leaves_the_old_file_and_no_other(path, monkeypatch, step):
    def fail(*args):
        raise OSError("no space left")

    monkeypatch.setattr(f"avalanche_f2ocl.safe_file.{step}", fail)
    with pytest.raises(OSError, match="no space"):
        write_safe_file(path, {"a": torch.zeros(1)}, {})
    assert os.listdir(path.parent) == [path.name]
    assert read_safe_file(path)[1] == VALUES


def test_checksum_knows_names_shapes_dtypes_and_values():
    base = {"a": torch.zeros(4), "b": torch.ones(2)}
    others = [
        {"a": torch.zeros(2, 2), "b": torch.ones(2)},
        {"a": torch.zeros(4, dtype=torch.float64), "b": torch.ones(2)},
        {"c": torch.zeros(4), "b": torch.ones(2)},
        {"a": torch.zeros(4), "b": torch.tensor([1.0, 2.0])},
        {"a": torch.zeros(4)},
    ]
    digests = {tensors_sha256(t) for t in [base, *others]}
    assert len(digests) == 6
    assert tensors_sha256(dict(reversed(base.items()))) == tensors_sha256(base)


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_file_has_the_permissions_of_a_new_one_or_those_of_the_old(tmp_path):
    path, before = tmp_path / "a", os.umask(0o027)
    try:
        write_safe_file(path, {}, {})
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o604)
    write_safe_file(path, {}, {})
    assert path.stat().st_mode & 0o777 == 0o604


def test_no_folder_is_opened_on_windows(tmp_path, monkeypatch):
    opened, real = [], os.open
    monkeypatch.setattr("avalanche_f2ocl.safe_file._SYNC_FOLDERS", False)
    monkeypatch.setattr(os, "open", lambda path, flags, *rest: opened.append((path, flags)) or real(path, flags, *rest))
    write_safe_file(tmp_path / "a", {}, {})
    # What is only open for reading cannot be flushed there.
    assert [(path.name.split(".")[0], flags) for path, flags in opened] == [("a", os.O_RDWR)]
