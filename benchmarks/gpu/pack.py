"""Packs what a machine without a network lacks into pieces: libraries, CIFAR-100 and weights.

    python -m benchmarks.gpu.pack --data cifar100.zip --weights vit_tiny_patch16_224.safetensors --has packages.txt

--has lists the packages that the machine has, one a line. Wheels of the other packages that this package and its tests
need come from the folder --wheels, or else from the index. The command makes .gpu/1, .gpu/2 and so on, each of at most
--most bytes, which git ignores. Bring these folders to the machine, separately if necessary, and run the printed
command. Files that are too large are cut; benchmarks.gpu joins them again and checks their checksums.
"""

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from benchmarks.gpu.unpack import MANIFEST

MOST = 55_000_000
ROOT = Path(__file__).parents[2]
NEEDED = ("avalanche-lib", "timm", "torchvision", "scikit-learn", "hypothesis", "pytest", "pytorch-metric-learning")
"""Packages that the package needs or its tests import."""


def name_of(requirement: str) -> str:
    """The normal form of a requirement's or a wheel's package.

    Example:
        >>> name_of("Typing_Extensions >=4.6.0"), name_of("qpsolvers[clarabel]")
        ('typing-extensions', 'qpsolvers')
    """
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


def missing(needed: list[str], there: set[str]) -> dict[str, str]:
    """Versions by name of needed packages that are not in ``there``, by the metadata of packages installed here."""
    found: dict[str, str] = {}
    todo = [name_of(name) for name in needed]
    while todo:
        name = todo.pop()
        if name in there or name in found:
            continue
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # for another system or Python
            continue
        required = [line for line in requires(name) or () if "extra ==" not in line and "sys_platform ==" not in line]
        todo += map(name_of, required)
    return found


def fetch(packages: dict[str, str], wheels: Path | None, folder: Path, python: str) -> None:
    """Puts wheels of packages into a folder: from another folder, from the index, or built from source."""
    for name, number in packages.items():
        own = [path for path in wheels.glob("*.whl") if name_of(path.name.split("-")[0]) == name] if wheels else []
        if own:
            shutil.copy(own[0], folder)
            continue
        common = ["--quiet", "--disable-pip-version-check", "--no-deps", f"{name}=={number}"]
        platforms = [f"--platform=manylinux{tag}_x86_64" for tag in ("_2_28", "_2_17", "2014", "1")]
        kind = ["--only-binary=:all:", "--implementation=cp", f"--python-version={python}", *platforms]
        pip = [sys.executable, "-m", "pip"]
        if subprocess.run([*pip, "download", *kind, "-d", folder, *common], stderr=subprocess.DEVNULL).returncode:
            subprocess.run([*pip, "wheel", "-w", folder, *common], check=True)


def pieces(path: Path, most: int) -> Iterator[bytes]:
    """A file's bytes, cut into pieces."""
    with path.open("rb") as file:
        while piece := file.read(most):
            yield piece


def pack(files: dict[str, Path], folder: Path, most: int) -> list[Path]:
    """Distributes files over folders of at most ``most`` bytes each, the manifest in the first.

    Args:
        files: files by their path in the pack.
        folder: the folder of the pack, which is emptied first.
        most: largest number of bytes in a folder.

    Returns:
        The folders.
    """
    shutil.rmtree(folder, ignore_errors=True)
    room: list[int] = []
    manifest: dict[str, dict] = {}
    for name, path in sorted(files.items(), key=lambda item: -item[1].stat().st_size):
        places = []
        for number, piece in enumerate(pieces(path, most - 100_000)):  # the manifest has to fit, too
            fits = next((i for i, left in enumerate(room) if left >= len(piece)), None)
            if fits is None:
                fits = len(room)
                room.append(most - 100_000)
            room[fits] -= len(piece)
            place = f"{fits + 1}/{name}" + (f".{number}" if path.stat().st_size > most - 100_000 else "")
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_bytes(piece)
            places.append(place)
        manifest[name] = {"pieces": places, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    (folder / MANIFEST).parent.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
    return [folder / str(i + 1) for i in range(max(1, len(room)))]


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="zip with CIFAR-100")
    parser.add_argument("--weights", type=Path, help="of vit_tiny_patch16_224")
    parser.add_argument("--has", type=Path, required=True, help="names of the packages that are there")
    parser.add_argument("--wheels", type=Path, help="folder with wheels")
    parser.add_argument("--python", default="3.12", help="version that is there")
    parser.add_argument("--out", type=Path, default=ROOT / ".gpu")
    parser.add_argument("--most", type=int, default=MOST, help="bytes of a folder")
    args = parser.parse_args(argv)
    there = {name_of(line) for line in args.has.read_text().split() if line}
    with tempfile.TemporaryDirectory() as folder:
        packages = missing(list(NEEDED), there)
        fetch(packages, args.wheels, Path(folder), args.python)
        files = {f"wheels/{path.name}": path for path in Path(folder).glob("*.whl")}
        given = {"data": args.data, "weights": args.weights}
        files |= {f"{kind}/{path.name}": path for kind, path in given.items() if path}
        folders = pack(files, args.out, args.most)
    print("missing there:", ", ".join(f"{name} {number}" for name, number in sorted(packages.items())) or "nothing")
    for path in folders:
        print(path, sum(file.stat().st_size for file in path.rglob("*") if file.is_file()), "bytes")
    print(f"there: python -m benchmarks.gpu --pack {args.out.name} --out DIR --minutes 20")


if __name__ == "__main__":
    main()
