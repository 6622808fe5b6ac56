"""Large downloads that continue where they stopped."""

import os
from http.client import HTTPException
from pathlib import Path
from urllib.request import Request, urlopen

from torchvision.datasets.utils import calculate_md5
from tqdm import tqdm

_CHUNK = 1 << 20
_TIMEOUT = 60  # seconds without a byte


def download(url: str, path: Path, size: int, md5: str) -> None:
    """Downloads a file with a progress bar; ``path`` only ever holds the whole, checked file.

    An incomplete download stays in ``<path>.part``; the next call asks the server for the rest, or starts
    again if the server only sends whole files.

    Args:
        url: address of the file.
        path: where the file is saved; folders are made as needed.
        size: size in bytes.
        md5: MD5 checksum, hexadecimal.

    Raises:
        OSError: there is no network, the connection broke, or the disk is full; the message says what to do by hand.
        ValueError: another file arrived; it is removed.

    Example:
        >>> download("https://example.org/a.tar", Path("a.tar"), 10240, "0" * 32)  # doctest: +SKIP
    """
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _fetch(url, part, size)
    except (OSError, HTTPException) as error:
        raise OSError(
            f"{url} could not be downloaded ({error}). Call again to go on where it stopped, "
            f"or fetch it by hand and save it as {str(path)!r}"
        ) from error
    if problem := _problem(part, size, md5):
        part.unlink()  # more bytes would not help
        raise ValueError(f"what came from {url} for {str(path)!r} {problem}. It was removed: call again")
    os.replace(part, path)


def check_file(path: Path, size: int, md5: str) -> None:
    """Raises ValueError unless a file has this size in bytes and this MD5."""
    if problem := _problem(path, size, md5):
        raise ValueError(f"{str(path)!r} is damaged or another file: it {problem}. Delete it and download it again")


def _problem(path: Path, size: int, md5: str) -> str | None:
    found = path.stat().st_size
    if found != size:
        return f"has {found} bytes, expected are {size}"
    digest = calculate_md5(path)
    return None if digest == md5 else f"has MD5 {digest}, expected is {md5}"


def _fetch(url: str, part: Path, size: int) -> None:
    """Appends to ``part`` until it has ``size`` bytes or more."""
    done = part.stat().st_size if part.exists() else 0
    if done >= size:
        return
    request = Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    with urlopen(request, timeout=_TIMEOUT) as response:
        if response.status != 206:  # the server sends the whole file, not the rest
            done = 0
        bar = tqdm(desc=part.stem, initial=done, total=size, unit="B", unit_scale=True)
        with part.open("ab" if done else "wb") as file, bar:
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                bar.update(len(chunk))
    arrived = part.stat().st_size
    if arrived < size:
        raise ConnectionError(f"the connection ended after {arrived} of {size} bytes")
