"""What travels in pieces arrives whole."""

import subprocess
import sys
import zipfile

import pytest

from benchmarks.gpu.pack import fetch, missing, pack
from benchmarks.gpu.unpack import unpack


def wheel(folder, name):
    """The smallest there is."""
    path, info = folder / f"{name}-1.0-py3-none-any.whl", f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{name}.py", "answer = 42\n")
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def packed(tmp_path):
    """A data set of 700 kB, weights and a library in folders of at most 400 kB."""
    (tmp_path / "cifar100.zip").write_bytes(bytes(range(250)) * 2800)
    (tmp_path / "vit.safetensors").write_bytes(b"w" * 90_000)
    files = {"data/cifar100.zip": tmp_path / "cifar100.zip", "weights/vit.safetensors": tmp_path / "vit.safetensors"}
    files["wheels/some_library-1.0-py3-none-any.whl"] = wheel(tmp_path, "some_library")
    return tmp_path, pack(files, tmp_path / "packed", 400_000)


def test_what_was_packed_is_there_again(packed):
    folder, parts = packed
    assert len(parts) >= 3
    assert all(sum(file.stat().st_size for file in part.rglob("*") if file.is_file()) <= 400_000 for part in parts)
    for _ in range(2):  # the second time it is all there
        found = unpack(folder / "packed")
        for path, name in ((found.data, "cifar100.zip"), (found.weights, "vit.safetensors")):
            with open(path, "rb") as file:
                assert file.read() == (folder / name).read_bytes()
    code = "import some_library; print(some_library.answer)"
    environment = {"PYTHONPATH": found.site}
    done = subprocess.run([sys.executable, "-S", "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout == "42\n"


def test_a_folder_that_did_not_come_and_one_that_came_broken(packed):
    folder, parts = packed
    piece = parts[1] / "data" / "cifar100.zip.1"
    content = piece.read_bytes()
    piece.write_bytes(content[:-1])
    with pytest.raises(ValueError, match=r"cifar100\.zip: its pieces"):
        unpack(folder / "packed")
    piece.unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks 2/data/cifar100\.zip\.1"):
        unpack(folder / "packed")


def test_what_is_missing_is_what_needs_it_too():
    there = {"torch", "numpy", "matplotlib", "scikit-learn", "torchvision", "torchmetrics", "tensorboard", "wandb"}
    found = missing(["Avalanche_Lib", "numpy"], there)
    assert {"avalanche-lib", "dill", "gputil"} <= found.keys() and not found.keys() & there
    assert "sphinx" not in found  # of an extra
    assert not missing(["numpy", "torch"], there)


def test_wheels_come_from_a_folder(tmp_path):
    (tmp_path / "from").mkdir()
    (tmp_path / "to").mkdir()
    wheel(tmp_path / "from", "some_library")
    fetch({"some-library": "1.0"}, tmp_path / "from", tmp_path / "to", "3.12")
    assert [path.name for path in (tmp_path / "to").iterdir()] == ["some_library-1.0-py3-none-any.whl"]
