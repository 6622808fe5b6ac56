"""Turns images into the backbone's input, on the images' device."""

from typing import Any

import torch
from timm.data import resolve_model_data_config
from torch import Tensor, nn
from torch.nn import functional as F

from avalanche_f2ocl.image_fit import ImageFit
from avalanche_f2ocl.options import Fit, Normalise


class ImagePreparation(nn.Module):
    """Gives images three channels, fits them to a square and normalises them, without augmentation.

    Args:
        fit: how images become squares.
        mean, std: mean and standard deviation per channel, for images in [0, 1].
        inputs: ``"auto"``; or ``"normalised"``, which passes images on unchanged.

    Example:
        >>> prepare = ImagePreparation(ImageFit(32), (0.5,) * 3, (0.5,) * 3)
        >>> prepare(torch.full((2, 1, 8, 6), 255, dtype=torch.uint8)).shape
        torch.Size([2, 3, 32, 32])
    """

    mean: Tensor
    std: Tensor

    def __init__(self, fit: ImageFit, mean: tuple[float, ...], std: tuple[float, ...], inputs: str = "auto") -> None:
        super().__init__()
        self.fit, self.inputs = fit, inputs
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std, dtype=torch.float32).view(1, 3, 1, 1), persistent=False)

    @torch.no_grad()
    def forward(self, images: Tensor) -> Tensor:
        """``(B, C, H, W)`` uint8 or float in [0, 1] -> ``(B, 3, S, S)`` float32."""
        if self.inputs == "normalised":
            return images.float()
        images = _in_unit(images)
        side = self.fit.image_size
        if images.shape[-2:] != (side, side):
            images = self._fitted(images)
            if not torch.compiler.is_compiling():
                # In place, since allocating takes long for a large batch; torch 2.4 cannot export that.
                return (images.clamp_(0, 1) - self.mean).div_(self.std)
            images = images.clamp(0, 1)  # bicubic interpolation overshoots
        return (images - self.mean) / self.std

    def fitted(self, images: Tensor) -> Tensor:
        """Fits images ``(B, C, H, W)``, uint8 or float in [0, 1], without normalising: ``(B, C, S, S)`` float32."""
        side = self.fit.image_size
        images = _in_unit(images)
        return images if images.shape[-2:] == (side, side) else self._fitted(images).clamp(0, 1)

    def _fitted(self, images: Tensor) -> Tensor:
        side, place = self.fit.image_size, self.fit.place(images.shape[-1], images.shape[-2])
        size = (place.height, place.width)
        images = F.interpolate(images, size, mode=self.fit.interpolation, antialias=True, align_corners=False)
        if place.left < 0 or place.top < 0:
            square = torch.tensor(self.fit.fill, device=images.device).view(1, 3, 1, 1) / 255
            square = square.expand(len(images), 3, side, side).clone()
            square[..., -place.top :, -place.left :][..., : place.height, : place.width] = images
            return square
        if size == (side, side):
            return images
        return images[..., place.top : place.top + side, place.left : place.left + side]


def _in_unit(images: Tensor) -> Tensor:
    return images.float() / 255 if images.dtype == torch.uint8 else images.float()


def enlarged(images: Tensor, zoom: float) -> Tensor:
    """The middle of square images, enlarged to the images' size.

    Args:
        images: ``(B, C, S, S)`` floating.
        zoom: the middle S / zoom pixels of each side are enlarged; 1 gives the images themselves.

    Returns:
        ``(B, C, S, S)``.

    Example:
        >>> enlarged(torch.eye(4).view(1, 1, 4, 4), 2.0).shape
        torch.Size([1, 1, 4, 4])
    """
    if zoom == 1:
        return images
    side = images.shape[-1]
    kept = max(1, round(side / zoom))
    first = (side - kept) // 2
    middle = images[..., first : first + kept, first : first + kept]
    return F.interpolate(middle, (side, side), mode="bilinear", align_corners=False)


def prepared_as(
    vit: Any, fit: Fit = "auto", normalise: Normalise = "backbone", inputs: str = "auto"
) -> ImagePreparation:
    """The preprocessing by a ViT's configuration: size, crop, interpolation, mean and standard deviation.

    Args:
        vit: a ViT of timm's.
        fit: how images become squares; ``"auto"`` is ``"squash"`` if that is the ViT's own crop mode.
        normalise, inputs: see :class:`avalanche_f2ocl.backbone.PromptableViT`.

    Example:
        >>> from avalanche_f2ocl.backbone.weights import load_vit
        >>> prepared_as(load_vit("micro_vit")).fit.image_size
        32
    """
    data = resolve_model_data_config(vit)
    return ImagePreparation(
        ImageFit(
            vit.patch_embed.img_size[0],
            "squash" if fit == "auto" and data["crop_mode"] == "squash" else fit,
            data["crop_pct"],
            "bilinear" if data["interpolation"] == "bilinear" else "bicubic",
            tuple(round(255 * mean) for mean in data["mean"]),
        ),
        mean=data["mean"] if normalise == "backbone" else (0.0,) * 3,
        std=data["std"] if normalise == "backbone" else (1.0,) * 3,
        inputs=inputs,
    )
