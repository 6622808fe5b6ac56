"""Data sets that are published as one archive: downloaded, checked and listed by a short description of each."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from avalanche_f2ocl.datasets.archives import Archive, Inside, Tar, Zip
from avalanche_f2ocl.datasets.by_class import SPLITS
from avalanche_f2ocl.datasets.class_folders import ImageFiles
from avalanche_f2ocl.datasets.download import check_file, download
from avalanche_f2ocl.datasets.image_source import ImageSource
from avalanche_f2ocl.datasets.listed import check_same_classes
from avalanche_f2ocl.datasets.location import data_folder
from avalanche_f2ocl.datasets.unpacking import unpack

_READABLE: dict[str, Callable[[Path], Archive]] = {".tar": Tar, ".zip": Zip}
"""Kinds of archives in which any file can be read without those before it; others are unpacked."""


class Listing(NamedTuple):
    """The contents of a source.

    Attributes:
        by_class: names of files by split and class; classes are in the order of their labels.
        class_names: readable names of the classes, if they are known.
    """

    by_class: dict[str, dict[str, list[str]]]
    class_names: dict[str, str]


@dataclass(frozen=True)
class Published:
    """Where a data set can be downloaded, what it contains, and how its files are arranged.

    Args:
        name: name of the data set.
        url: address of the archive.
        size: size of the archive in bytes.
        md5: MD5 of the archive, hexadecimal.
        folder: the folder that contains everything in the archive.
        place: the data set's folder in Avalanche's data folder.
        classes, images: numbers of classes and images in both parts together.
        listing: function that lists the images of ``folder`` by split and class.

    Example:
        >>> from avalanche_f2ocl.datasets.cub200 import CUB200
        >>> CUB200.archive, CUB200.folder, CUB200.images
        ('CUB_200_2011.tgz', 'CUB_200_2011', 11788)
    """

    name: str
    url: str
    size: int
    md5: str
    folder: str
    place: str
    classes: int
    images: int
    listing: Callable[[ImageSource], Listing]

    @property
    def archive(self) -> str:
        """The archive's file name."""
        return self.url.rpartition("/")[2]


class PublishedFiles(ImageFiles):
    """Lists a published data set by split and class.

    It reads the folder ``<root>/<folder>`` if there is one, and otherwise the archive beside it, whose size and MD5 are
    checked every time. A tar or zip is never unpacked; a compressed tar is unpacked once into that folder. A folder is
    only checked for its numbers of images and classes.

    Args:
        about: description of the data set.
        root: folder of the data; by default the data set's own folder in Avalanche's data folder.
        download: whether to download the archive if neither folder nor archive is there.

    Attributes:
        class_names: names of the classes by label.
        names: by split, names of files in ``<folder>``.
        labels: labels by split, ``(N,)`` int64.

    Raises:
        TypeError: ``root`` is no path.
        FileNotFoundError: neither folder nor archive is there, and ``download=False``.
        ValueError: the archive is damaged, or the numbers of images or classes are wrong.
        OSError: the download failed, or there is no room to unpack.

    Example:
        >>> from avalanche_f2ocl.datasets.cub200 import CUB200
        >>> files = PublishedFiles(CUB200, "data")  # doctest: +SKIP
        >>> len(files.names["train"]), files.class_names[0]  # doctest: +SKIP
        (5994, 'Black footed Albatross')
    """

    def __init__(self, about: Published, root: str | PathLike | None = None, download: bool = True) -> None:
        if root is not None and not isinstance(root, (str, PathLike)):
            raise TypeError(f"root={root!r}: must be the path of a folder, is {type(root).__name__}")
        self.source = _source(about, data_folder(about.place) if root is None else Path(root), download)
        by_class, readable = about.listing(self.source)
        images = sum(len(names) for part in by_class.values() for names in part.values())
        classes = len(set().union(*by_class.values()))
        if (classes, images) != (about.classes, about.images):
            raise ValueError(
                f"{str(self.source.path)!r} has {images} images in {classes} folders of classes, expected are "
                f"{about.images} in {about.classes}: unpack {about.url} again, or delete it to have it downloaded"
            )
        check_same_classes(by_class)
        self._set(by_class)
        self.class_names = [readable.get(name, name) for name in by_class["train"]]


def by_split_and_class(found: Iterable[tuple[str, str, str]]) -> dict[str, dict[str, list[str]]]:
    """Files by split and class, as in a :class:`Listing`, from triples (split, class, file) in their order.

    Example:
        >>> by_split_and_class([("train", "cat", "1.jpg"), ("test", "cat", "2.jpg"), ("train", "cat", "3.jpg")])
        {'train': {'cat': ['1.jpg', '3.jpg']}, 'test': {'cat': ['2.jpg']}}
    """
    by_class: dict[str, dict[str, list[str]]] = {split: {} for split in SPLITS}
    for split, class_name, file in found:
        by_class[split].setdefault(class_name, []).append(file)
    return by_class


def text(source: ImageSource, name: str) -> str:
    """The text of a file in a source; empty if there is no such file."""
    if name not in source.files:
        return ""
    with source.archive.open(name) as file:
        return file.read().decode(errors="replace")


def _source(about: Published, root: Path, fetch: bool) -> ImageSource:
    folder, path = root / about.folder, root / about.archive
    if folder.is_dir():
        return ImageSource(folder)
    if path.exists():
        check_file(path, about.size, about.md5)
    elif fetch:
        download(about.url, path, about.size, about.md5)
    else:
        raise FileNotFoundError(
            f"neither {str(path)!r} nor the folder {str(folder)!r} is there: "
            f"say download=True, or fetch {about.url} by hand"
        )
    if path.suffix in _READABLE:
        return ImageSource(path, Inside(_READABLE[path.suffix](path), about.folder + "/"))
    unpack(path, folder)
    return ImageSource(folder)
