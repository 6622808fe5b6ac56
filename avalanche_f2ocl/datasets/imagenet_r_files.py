"""ImageNet-R: 30,000 renditions (art, cartoons, toys, ...) of 200 ImageNet classes, split 80/20 by class.

Data: Hendrycks et al., The Many Faces of Robustness, 2021, published as one part. F2OCL
(arXiv 2510.00467, Experiments) trains on 80 % of each class; this module fixes which 80 %.
"""

from os import PathLike

from avalanche_f2ocl.datasets.location import data_folder
from avalanche_f2ocl.datasets.one_part import one_part
from avalanche_f2ocl.datasets.published import Published, PublishedFiles

URL = "https://people.eecs.berkeley.edu/~hendrycks/imagenet-r.tar"
SIZE = 2_191_079_936
"""Size of the archive in bytes, as tensorflow_datasets lists it."""
MD5 = "a61312130a589d0ca1a8fca1f2bd3337"
"""MD5 of the archive, as several libraries of data sets check it."""
CLASSES = 200
IMAGES = 30_000


class ImageNetRFiles(PublishedFiles):
    """Lists ImageNet-R by split and class.

    It reads the folder ``<root>/imagenet-r`` if there is one, and otherwise the archive ``<root>/imagenet-r.tar``
    (2.2 GB, never unpacked). The archive's size and MD5 are checked every time, which takes seconds.

    The split: the file names of a class, sorted, are permuted by a generator of (``split_seed``, WordNet
    id); the first 80 %, rounded to the nearest whole number, are for training. So the split depends only on
    names, which the archive's MD5 fixes. A folder is only checked for its number of images.

    Args:
        root: folder of the data; by default Avalanche's data folder.
        download: whether to download the archive if neither folder nor archive is there.
        split_seed: seed of the split.

    Attributes:
        class_names: names from the archive's README.txt, or else WordNet ids; labels follow the sorted ids.
        names: by split, ``<WordNet id>/<file>``.
        labels: labels by split, ``(N,)`` int64.

    Raises:
        TypeError: ``root`` is no path, or ``split_seed`` is no int.
        FileNotFoundError: neither folder nor archive is there, and ``download=False``.
        ValueError: the archive is damaged, or there are not 30,000 images in 200 classes.
        OSError: the download failed.

    Example:
        >>> files = ImageNetRFiles("data")  # doctest: +SKIP
        >>> sum(map(len, files.names.values()))  # doctest: +SKIP
        30000
    """

    def __init__(self, root: str | PathLike | None = None, download: bool = True, split_seed: int = 0) -> None:
        if isinstance(split_seed, bool) or not isinstance(split_seed, int):
            raise TypeError(f"split_seed={split_seed!r}: must be an int, is {type(split_seed).__name__}")
        name = "imagenet-r"
        about = Published(name, URL, SIZE, MD5, name, name, CLASSES, IMAGES, one_part(name, split_seed))
        super().__init__(about, data_folder(name) if root is None else root, download)
