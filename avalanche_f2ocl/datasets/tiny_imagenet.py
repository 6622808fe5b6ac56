"""Tiny ImageNet: 110,000 images of 64 x 64 pixels of 200 ImageNet classes; the test part is its ``val/``.

Data: Stanford's course CS231n, 2015. Its ``test/`` is not used, since the labels are kept secret.
"""

import re

from avalanche_f2ocl.datasets.image_source import ImageSource
from avalanche_f2ocl.datasets.published import Listing, Published, by_split_and_class, text


def _listing(source: ImageSource) -> Listing:
    """Labels follow the sorted WordNet ids; an image of ``val/`` without an annotation is left out."""
    annotations = dict(re.findall(r"^(\S+)\t(n\d{8})\b", text(source, "val/val_annotations.txt"), re.M))
    found: list[tuple[str, str, str]] = []
    for image in source.images:
        if match := re.fullmatch(r"train/(n\d{8})/images/[^/]+", image):
            found.append(("train", match[1], image))
        elif (match := re.fullmatch(r"val/images/([^/]+)", image)) and match[1] in annotations:
            found.append(("test", annotations[match[1]], image))
    by_class = by_split_and_class(sorted(found))
    names = re.findall(r"^(n\d{8})\t\s*([^,\r\n]*[^,\s])", text(source, "words.txt"), re.M)
    return Listing(by_class, dict(names))


TINY_IMAGENET = Published(
    name="tiny-imagenet",
    url="http://cs231n.stanford.edu/tiny-imagenet-200.zip",
    size=248_100_043,  # several libraries and their logs give this size and MD5
    md5="90528d7ca1a48142e341f4ef8d21d0de",
    folder="tiny-imagenet-200",
    place="tinyimagenet",  # the same place as that of Avalanche's own TinyImagenet
    classes=200,
    images=110_000,
    listing=_listing,
)
