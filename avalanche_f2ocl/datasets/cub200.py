"""CUB-200-2011: 11,788 photographs of 200 species of birds, in the published training and test parts.

Data: Wah et al., The Caltech-UCSD Birds-200-2011 Dataset, 2011.
"""

import re

from avalanche_f2ocl.datasets.image_source import ImageSource
from avalanche_f2ocl.datasets.published import Listing, Published, by_split_and_class, text

_SPLITS = {"1": "train", "0": "test"}


def _listing(source: ImageSource) -> Listing:
    """Lists images by the archive's tables; an image missing from a table is left out, and then the count is wrong."""
    classes, labels = _table(source, "classes.txt"), _table(source, "image_class_labels.txt")
    splits, there = _table(source, "train_test_split.txt"), set(source.images)
    found: list[tuple[int, str, str]] = []
    for number, name in _table(source, "images.txt").items():
        image, split = f"images/{name}", _SPLITS.get(splits.get(number, ""))
        if split is not None and labels.get(number) in classes and image in there:
            found.append((int(labels[number]), split, image))
    by_class = by_split_and_class((split, str(class_id), image) for class_id, split, image in sorted(found))
    return Listing(by_class, {label: _readable(name) for label, name in classes.items()})


def _table(source: ImageSource, name: str) -> dict[str, str]:
    """Lines ``<number> <value>`` of a text file."""
    return dict(re.findall(r"^(\d+) (\S+)\s*$", text(source, name), re.M))


def _readable(name: str) -> str:
    return re.sub(r"^\d+\.", "", name).replace("_", " ")


CUB200 = Published(
    name="cub200",
    url="https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",
    size=1_150_585_339,  # several libraries of data sets check this size and MD5
    md5="97eceeb196236b17998738112f37df78",
    folder="CUB_200_2011",
    place="CUB_200_2011",  # the same place as that of Avalanche's own CUB200
    classes=200,
    images=11_788,
    listing=_listing,
)
