"""Tars as written by WebDataset: the files of a sample share their name up to the first dot."""

import json
import re
import tarfile
from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from avalanche_f2ocl.datasets.archives import Tar
from avalanche_f2ocl.datasets.image_source import ImageSource
from avalanche_f2ocl.datasets.listed import Part
from avalanche_f2ocl.datasets.reading import is_image

_BRACES = re.compile(r"\{(?:(\d+)\.\.(\d+)|([^{}]*,[^{}]*))\}")


def is_shards(paths: Any) -> bool:
    """Whether it is a path, or a list of at least one path.

    Example:
        >>> is_shards("train-{0..3}.tar"), is_shards(["0.tar", "1.tar"]), is_shards([]), is_shards([("image", 0)])
        (True, True, False, False)
    """
    if isinstance(paths, list | tuple):
        return bool(paths) and all(isinstance(path, str | PathLike) for path in paths)
    return isinstance(paths, str | PathLike)


def expanded(pattern: str | PathLike) -> list[str]:
    """The paths that a pattern with braces stands for, as in a shell.

    Args:
        pattern: a path with any number of ``{first..last}`` and ``{one,other}``.

    Raises:
        ValueError: ``last`` is below ``first``.

    Example:
        >>> expanded("{a,b}-{09..10}.tar")
        ['a-09.tar', 'a-10.tar', 'b-09.tar', 'b-10.tar']
    """
    pattern = fspath(pattern)
    if (braces := _BRACES.search(pattern)) is None:
        return [pattern]
    first, last, several = braces.groups()
    if several is not None:
        inside = several.split(",")
    else:
        if int(last) < int(first):
            raise ValueError(f"{pattern!r}: {{{first}..{last}}} ends before it begins")
        padded = any(len(end) > 1 and end.startswith("0") for end in (first, last))
        width = max(len(first), len(last)) if padded else 0
        inside = [str(number).zfill(width) for number in range(int(first), int(last) + 1)]
    before, rest = pattern[: braces.start()], expanded(pattern[braces.end() :])
    return [before + own + end for own in inside for end in rest]


def part_of(paths: str | PathLike | Sequence[str | PathLike]) -> Part:
    """Lists the images of tars, in their order; labels are read, but images are not.

    A label is an integer in ``<key>.cls``, or an integer or a class's name as ``"label"`` in ``<key>.json``. A sample
    without an image or a label is skipped. Of several images, such as ``<key>.jpg`` and ``<key>.mask.png``, the one
    with the fewest dots in its suffix is used.

    Args:
        paths: paths of uncompressed tars, or a pattern with braces, see :func:`expanded`.

    Raises:
        FileNotFoundError: there is no such path.
        ValueError: a file is of another kind, a label is invalid, or there is no sample at all.
    """
    given = [paths] if isinstance(paths, str | PathLike) else paths
    images, labels, passed_over = [], [], []
    for path in (own for pattern in given for own in _there(pattern)):
        tar = _opened(path)
        source = ImageSource(path, tar)
        for key, files in _samples(tar.listed()).items():
            image, label = _image(files), _label(path, tar, files)
            if image is None or label is None:
                passed_over.append(f"{path}/{key}")
            else:
                images.append((source, image))
                labels.append(label)
    if not images:
        raise ValueError(f"{paths!r} has no sample of an image and a label, that is <key>.jpg and <key>.cls or .json")
    return Part(images, labels, passed_over=passed_over)


def _there(pattern: str | PathLike) -> list[str]:
    return [fspath(pattern)] if Path(pattern).exists() else expanded(pattern)


def _opened(path: str) -> Tar:
    if Path(path).is_dir():
        raise ValueError(
            f"{path!r} is a folder, but in a pair of paths both must be tars. Give a folder with train/ and test/ alone"
        )
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no tar {path!r}")
    tar = Tar(Path(path))
    try:
        tar.listed()
    except tarfile.ReadError as error:
        raise ValueError(f"{path!r} is no tar, damaged, or compressed as a whole ({error}): unpack it") from error
    return tar


def _samples(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Files by the sample's key and then by suffix."""
    samples: dict[str, dict[str, str]] = {}
    for name in names:
        folder, slash, file = name.rpartition("/")
        key, _, suffix = file.partition(".")
        if key and suffix:
            samples.setdefault(folder + slash + key, {})[suffix.lower()] = name
    return samples


def _image(files: dict[str, str]) -> str | None:
    suffixes = sorted(
        (suffix for suffix in files if is_image(f"_.{suffix}")), key=lambda suffix: (suffix.count("."), suffix)
    )
    return files[suffixes[0]] if suffixes else None


def _label(path: str, tar: Tar, files: dict[str, str]) -> int | str | None:
    name = files.get("cls") or files.get("json")
    if name is None:
        return None
    text = tar.open(name).read()
    try:
        if "cls" in files:
            return int(text)
        label = json.loads(text).get("label")
        if label is None or (isinstance(label, int | str) and not isinstance(label, bool)):
            return label
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{path}/{name} holds {text[:80]!r}: a label is needed ({error})") from error
    raise ValueError(f"{path}/{name} has the label {label!r}: must be an integer or a name")
