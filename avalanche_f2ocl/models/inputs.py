"""Images in any of the usual forms, as one tensor."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms.functional import pil_to_tensor

from avalanche_f2ocl.backbone.preprocessing import ImagePreparation
from avalanche_f2ocl.datasets.image_source import ImageSource
from avalanche_f2ocl.datasets.reading import picture

OneImage = Tensor | np.ndarray | Image.Image | str | PathLike
Images = OneImage | Sequence[OneImage]
"""Images in any form that :func:`image_batch` takes."""

_FORMS = (
    "give a tensor (B, C, H, W) or (C, H, W), a NumPy array (H, W), (H, W, C) or (B, H, W, C), a PIL image, a path, "
    "or a list of those"
)


def image_batch(images: Any, prepare: ImagePreparation) -> Tensor:
    """Images as a tensor; a single image becomes a mini-batch of one.

    Files, PIL images and uint8 arrays are read and fitted to the backbone's square as the command line does with
    files: upright, in RGB, transparency over white. A list of tensors of the same shape and dtype is stacked; images
    in any other list are fitted one by one.

    Args:
        images: a tensor ``(B, C, H, W)``, which stays as it is, or ``(C, H, W)``; a NumPy array ``(H, W)``,
            ``(H, W, C)`` with C 1, 3 or 4, or ``(B, H, W, C)``, uint8 or floats in [0, 1]; a PIL image; a path; or a
            list of these, of any sizes.
        prepare: the backbone's preprocessing, which says how images become squares.

    Returns:
        ``(B, C, H, W)``.

    Raises:
        TypeError: the images have another type, or are no tensor although ``prepare`` takes normalised images only.
        ValueError: the list is empty, or a shape or file is no image; the message names it.
        FileNotFoundError: there is no such file.

    Example:
        >>> from avalanche_f2ocl.image_fit import ImageFit
        >>> prepare = ImagePreparation(ImageFit(32), (0.5,) * 3, (0.5,) * 3)
        >>> image_batch([np.zeros((40, 50, 3), np.uint8), Image.new("L", (9, 9))], prepare).shape
        torch.Size([2, 3, 32, 32])
    """
    if isinstance(images, Tensor):
        return images.unsqueeze(0) if images.dim() == 3 else images
    if isinstance(images, np.ndarray) and images.ndim == 4:
        images = list(images)
    alone = isinstance(images, (np.ndarray, Image.Image, str, PathLike))
    if not alone and not isinstance(images, Sequence):
        raise TypeError(f"images are {type(images).__name__}: {_FORMS}")
    parts = [_one(image, prepare) for image in ([images] if alone else images)]
    if not parts:
        raise ValueError("images are an empty list: at least one image is needed")
    if len({(part.shape, part.dtype, part.device) for part in parts}) == 1:
        return torch.stack(parts)
    if prepare.inputs == "normalised":
        raise ValueError("images have several shapes or dtypes: inputs='normalised' takes one")
    return torch.cat([prepare.fitted(part.unsqueeze(0)).expand(-1, 3, -1, -1) for part in parts])


def _one(image: Any, prepare: ImagePreparation) -> Tensor:
    """One image as a tensor ``(C, H, W)``."""
    if isinstance(image, Tensor):
        if image.dim() != 3 or image.shape[0] not in (1, 3):
            raise ValueError(f"an image has shape {tuple(image.shape)}: a tensor must be (C, H, W) with C 1 or 3")
        return image
    if prepare.inputs == "normalised":
        raise TypeError(f"an image is {type(image).__name__}: inputs='normalised' takes tensors only")
    if isinstance(image, (str, PathLike)):
        path = Path(image)
        if not path.is_file():
            raise FileNotFoundError(f"{str(path)!r}: there is no such file")
        return ImageSource(path.parent).pixels(path.name, prepare.fit)
    if isinstance(image, np.ndarray):
        if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] not in (1, 3, 4)) or image.size == 0:
            raise ValueError(
                f"an image has shape {image.shape}: a NumPy array must be (H, W) or (H, W, C) with C 1, 3 or 4; one "
                "with channels first becomes a tensor by torch.from_numpy()"
            )
        image = image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image
        if np.issubdtype(image.dtype, np.floating):
            return torch.from_numpy(np.ascontiguousarray(np.atleast_3d(image)[..., :3])).permute(2, 0, 1)
        if image.dtype != np.uint8:
            raise TypeError(f"an image is {image.dtype}: a NumPy array must be uint8, or floats in [0, 1]")
        image = Image.fromarray(image)
    if isinstance(image, Image.Image):
        return pil_to_tensor(picture(image, prepare.fit))
    raise TypeError(f"an image is {type(image).__name__}: {_FORMS}")
