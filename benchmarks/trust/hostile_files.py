"""Files that are no pictures although their names say so, or absurd pictures, as a folder of downloads may contain."""

import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from PIL import Image

from benchmarks.trust.made_pictures import noise, png, tiff, written

COLOURS = {"blue": (20, 30, 200), "red": (200, 30, 20)}
FORMATS = {"png": "PNG", "jpg": "JPEG", "gif": "GIF", "tif": "TIFF", "webp": "WEBP", "bmp": "BMP", "jp2": "JPEG2000"}


def good(folder: Path, count: int, seed: int = 0) -> list[Path]:
    """Writes ``count`` noisy pictures of each of two colours, ``<class>/good<i>.png``."""
    random, paths = np.random.default_rng(seed), []
    for name, colour in COLOURS.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for i in range(count):
            pixels = random.integers(-20, 20, (24 + i, 24, 3)) + colour
            paths.append(folder / name / f"good{i}.png")
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(paths[-1])
    return paths


def unreadable(quick: bool = False) -> Iterator[tuple[bytes, bytes]]:
    """Names and contents of files that are no pictures.

    Args:
        quick: whether to give only a few of those that differ little.
    """
    random = np.random.default_rng(0)
    for suffix, format in FORMATS.items():
        data = written(noise(24, 24), format).getvalue()
        for share in (0.5,) if quick else (0.05, 0.3, 0.6, 0.9):
            yield f"cut at {share}.{suffix}".encode(), data[: int(share * len(data))]
    for suffix in ("png", "tga") if quick else ("bmp dds gif ico jp2 jpg mpo pcx png psd qoi sgi tga tif webp").split():
        yield f"random.{suffix}".encode(), random.bytes(1000)
        yield f"random after the head.{suffix}".encode(), b"\x89PNG\r\n\x1a\n" + random.bytes(1000)
    yield b"empty.jpg", b""
    yield b"zeros.png", bytes(1000)
    yield b"text.jpg", b"<html>404 not found</html>"
    yield b"program.png", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n(x) print showpage\n"
    yield b"bomb of pixels.png", png(60_000, 60_000, 8, 2, [b""]).getvalue()
    yield b"bomb of text.png", png(1, 1, 8, 0, [b"\0"], (b"zTXt", b"a\0\0" + zlib.compress(bytes(2**24)))).getvalue()
    yield b"no sides.png", png(0, 0, 8, 2, [b""]).getvalue()
    yield b"more pixels than it has.png", png(500, 500, 8, 2, [bytes(30)]).getvalue()
    yield b"bits that do not exist.png", png(8, 8, 77, 2, [bytes(30)]).getvalue()
    yield b"large.gif", b"GIF89a" + struct.pack("<HH", 65535, 65535) + b"\x80\0\0" + bytes(20)
    yield (
        b"large.bmp",
        b"BM" + struct.pack("<IIIIiiHHIIiiII", 99, 0, 54, 40, 2**31 - 1, -(2**31), 1, 24, 0, 0, 0, 0, 0, 0),
    )
    yield b"large.ppm", b"P6 99999 99999 255\n" + bytes(99)
    yield b"levels.ppm", b"P5 4 4 0\n" + bytes(16)
    zeros = np.zeros((4, 4), np.uint8)
    for name, tags in {
        "wide": {256: 2**32 - 1}, "bits": {258: 2**31}, "samples": {277: 60_000}, "offset": {273: 2**32 - 1},
        "compression": {259: 34_712}, "strips": {278: 0, 279: 2**32 - 1}, "kind": {339: 99}, "jpeg": {259: 7},
    }.items():  # fmt: skip
        yield f"absurd {name}.tif".encode(), tiff(zeros, 8, more=tags).getvalue()
    yield b"circle of directories.tif", b"II*\0\x08\0\0\0" + b"\0\0" + struct.pack("<I", 8)
    yield b"not a number.tif", tiff(np.full((4, 4), np.nan, "<f4"), 32, kind=3).getvalue()
    yield b"photo.heic", b"\0\0\0\x18ftypheic" + bytes(100)
    yield b"nested.jpg", _zip_in_memory()
    yield b"new\nline.png", b"damaged"
    yield b"tab\tand \"quotes' `and` $(more).png", b"damaged"
    yield b"no text \xff\xfe.png", b"damaged"
    yield "\u202eright to left \U0001f600.png".encode(), b"damaged"
    yield b"long " + b"x" * 240 + b".png", b"damaged"
    yield b"-rf.png", b"damaged"
    yield b"carriage\rreturn\x1b[31m.png", b"damaged"


def odd(folder: Path) -> Iterator[bytes]:
    """Writes things that only a folder can hold, and yields their names."""
    folder.mkdir(exist_ok=True)
    os.mkfifo(folder / "pipe.jpg")
    (folder / "nowhere.png").symlink_to("/nowhere/at/all.png")
    (folder / "circle.png").symlink_to("circle.png")
    (folder / "device.png").symlink_to("/dev/zero")
    yield from (b"pipe.jpg", b"nowhere.png", b"circle.png", b"device.png")
    (folder / "circle of folders").symlink_to(folder, target_is_directory=True)
    (folder / "folder.jpg").mkdir()


def readable() -> Iterator[tuple[bytes, bytes]]:
    """Names and contents of files that look hostile and are pictures, of a third colour."""
    green = Image.new("RGB", (24, 24), (20, 190, 40))
    yield b"broken exif.jpg", written(green, "JPEG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff").getvalue()
    yield b"a jpeg by another name.png", written(green, "JPEG").getvalue()
    yield b"upper case.JPE", written(green, "JPEG").getvalue()
    yield b"strip.png", written(green.resize((1, 100_000)), "PNG").getvalue()
    yield b"flat strip.png", written(green.resize((100_000, 1)), "PNG").getvalue()
    yield b"something after its end.png", written(green, "PNG").getvalue() + bytes(1000)
    frames = written(green, "GIF", save_all=True, append_images=[noise(24, 24)]).getvalue()
    yield b"broken second frame.gif", frames[:-300]


def write(folder: Path, files: Iterator[tuple[bytes, bytes]]) -> list[bytes]:
    """Writes files under names that need not be text; returns the names."""
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for name, contents in files:
        with open(os.fsencode(folder) + b"/" + name, "wb") as file:
            file.write(contents)
        names.append(name)
    return names


def spoil(path: Path, archive_folder: str) -> list[str]:
    """Adds members to a zip that cannot be unpacked, as only a zip can hold them; returns their names."""
    contents = written(noise(24, 24), "BMP").getvalue()
    names = [f"{archive_folder}/{what}.bmp" for what in ("encrypted", "method", "lies short", "lies long", "damaged")]
    with ZipFile(path, "a") as archive:
        for name in names:
            archive.writestr(name, contents, zipfile.ZIP_DEFLATED)
        for name in ("../out.png", "/etc/out.png"):
            archive.writestr(name, b"damaged")
    data = bytearray(path.read_bytes())
    with ZipFile(path) as archive:
        places = {name: archive.getinfo(name).header_offset for name in names}
    for name in names:
        head = places[name]
        listed = data.rindex(name.encode()) - 46
        start = head + 30 + len(name)
        if "encrypted" in name:
            data[head + 6] = data[listed + 8] = 1
        elif "method" in name:
            data[head + 8] = data[listed + 10] = 99
        elif "lies" in name:
            length = struct.pack("<I", 100 if "short" in name else 2**31)
            data[head + 22 : head + 26] = data[listed + 24 : listed + 28] = length
        else:
            data[start : start + 20] = b"\xff" * 20
    path.write_bytes(data)
    return names


def zip_of(path: Path, folder: Path) -> None:
    """Zips everything in a folder that a zip can hold; parts of names that are no text are dropped."""
    with ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and not file.is_symlink() and "circle of folders" not in file.parts:
                name = file.relative_to(folder).as_posix()
                archive.writestr(os.fsencode(name).decode(errors="replace"), file.read_bytes())


def _zip_in_memory() -> bytes:
    from io import BytesIO

    file = BytesIO()
    with ZipFile(file, "w") as archive:
        archive.writestr("1.png", written(noise(9, 9), "PNG").getvalue())
    return file.getvalue()
