"""Data sets that are published as one archive: fetched, checked and listed from a short description of each."""

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
"""Archives of which any file can be read without those before it; others are unpacked."""


class Listing(NamedTuple):
    """What a source has.

    Attributes:
        by_class: per split and class, names of files; classes come in the order of their labels.
        class_names: what a person calls the classes, where it is known.
    """

    by_class: dict[str, dict[str, list[str]]]
    class_names: dict[str, str]


@dataclass(frozen=True)
class Published:
    """Where a data set is, what it has, and how it is laid out.

    Args:
        name: of the data set.
        url: of the archive.
        size: of the archive, in bytes.
        md5: of the archive, hexadecimal.
        folder: that everything in the archive lies in.
        place: the data set's folder in Avalanche's data folder.
        classes, images: how many there are in both parts together.
        listing: lists the images of ``folder`` by split and class.

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
    """Lists a published data set by split and class, and decodes the images asked for.

    Read is the folder ``<root>/<folder>`` if there is one, else the archive beside it, whose size and MD5 are checked
    every time. A tar or zip is never unpacked; a compressed tar is, once, into that folder. A folder is only checked
    for its numbers of images and classes.

    Args:
        about: the data set.
        root: folder; default the data set's own in Avalanche's data folder.
        download: whether to fetch the archive if neither is there.

    Attributes:
        class_names: by label.
        names: per split, names of files in ``<folder>``.
        labels: per split, ``(N,)`` int64.

    Raises:
        TypeError: ``root`` is no path.
        FileNotFoundError: neither is there, and ``download=False``.
        ValueError: a damaged archive, or other numbers of images or classes.
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
    """Triples (split, class, file) as a :class:`Listing` has them, in their order.

    Example:
        >>> by_split_and_class([("train", "cat", "1.jpg"), ("test", "cat", "2.jpg"), ("train", "cat", "3.jpg")])
        {'train': {'cat': ['1.jpg', '3.jpg']}, 'test': {'cat': ['2.jpg']}}
    """
    by_class: dict[str, dict[str, list[str]]] = {split: {} for split in SPLITS}
    for split, class_name, file in found:
        by_class[split].setdefault(class_name, []).append(file)
    return by_class


def text(source: ImageSource, name: str) -> str:
    """A text file of a source; empty where there is none."""
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
