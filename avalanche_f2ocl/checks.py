"""Checks of a mini-batch, before anything is learned from it.

The checks read values, so they should run while images and labels are still on the host.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

_ROUNDING = 1e-5


def check_images(images: Tensor, inputs: str = "auto", image_size: int | None = None) -> None:
    """Checks images ``(B, C, H, W)``.

    Args:
        images: uint8, or floats in [0, 1]; with ``inputs="normalised"`` any finite floats of exactly
            ``(B, 3, image_size, image_size)``.
        inputs: ``"auto"`` or ``"normalised"``.
        image_size: side in pixels that the backbone takes; needed for ``"normalised"``.

    Raises:
        TypeError: the images are no tensor, or have a dtype that no image has.
        ValueError: the rank, channels or size are wrong, the mini-batch is empty, or values are NaN, infinite, out of
            range or absent (on the device ``meta``).

    Example:
        >>> check_images(torch.zeros(2, 3, 32, 32, dtype=torch.uint8))
    """
    if not isinstance(images, Tensor):
        raise TypeError(f"images are {type(images).__name__}: must be a tensor (B, C, H, W)")
    if images.is_meta:
        raise ValueError("images are on the device 'meta', which holds no values")
    shape = tuple(images.shape)
    if images.dim() != 4:
        raise ValueError(f"images have shape {shape}: must be (B, C, H, W)")
    if shape[1] not in (1, 3):
        raise ValueError(f"images have {shape[1]} channels (shape {shape}): must be (B, C, H, W) with C 1 or 3")
    if images.numel() == 0:
        raise ValueError(f"images are empty (shape {shape}): at least one image with at least one pixel is needed")
    if inputs == "normalised":
        if not images.is_floating_point():
            raise TypeError(f"images are {images.dtype}: inputs='normalised' takes floats only")
        if shape[1:] != (3, image_size, image_size):
            raise ValueError(
                f"images have shape {shape}: inputs='normalised' takes exactly (B, 3, {image_size}, {image_size})"
            )
    elif images.dtype == torch.uint8:
        return
    elif not images.is_floating_point():
        raise TypeError(f"images are {images.dtype}: must be uint8, or floats in [0, 1]")
    low, high = (v.item() for v in images.aminmax())
    if not (abs(low) < float("inf") and abs(high) < float("inf")):
        raise ValueError(f"images hold NaN or infinite pixels (lowest {low}, highest {high})")
    if inputs == "auto" and (low < -_ROUNDING or high > 1 + _ROUNDING):
        raise ValueError(
            f"float images reach from {low:.4g} to {high:.4g}: they must lie in [0, 1] (or be uint8). "
            "For images that are normalised already, set inputs='normalised'"
        )


def check_labels(labels: Tensor | Sequence[int], batch_size: int) -> Tensor:
    """Checks class ids and brings them to the host.

    Args:
        labels: ``(B,)`` of an integer dtype, or a sequence of ints.
        batch_size: B.

    Returns:
        ``(B,)`` int64 on the CPU.

    Raises:
        TypeError: labels are not integers.
        ValueError: there is not one label for each image, or the labels have no values (on the device ``meta``).

    Example:
        >>> check_labels([4, -3], 2)
        tensor([ 4, -3])
    """
    labels = torch.as_tensor(labels)
    if labels.dtype == torch.bool or labels.is_floating_point() or labels.is_complex():
        raise TypeError(f"labels are {labels.dtype}: class ids must be integers")
    if labels.is_meta:
        raise ValueError("labels are on the device 'meta', which holds no values")
    if tuple(labels.shape) != (batch_size,):
        raise ValueError(f"labels have shape {tuple(labels.shape)}: must be ({batch_size},), one class id per image")
    return labels.to("cpu", torch.int64)
