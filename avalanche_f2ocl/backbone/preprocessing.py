"""From images as they come to what the backbone takes, on the images' device."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class ImagePreparation(nn.Module):
    """Grey to three channels, resize straight to a square, normalise. No crop, no augmentation.

    Args:
        image_size: side S in pixels.
        mean, std: per channel, for images in [0, 1].
        interpolation: ``"bicubic"`` or ``"bilinear"``, antialiased.
        inputs: ``"normalised"`` passes images untouched.

    Example:
        >>> prepare = ImagePreparation(32, (0.5,) * 3, (0.5,) * 3)
        >>> prepare(torch.full((2, 1, 8, 8), 255, dtype=torch.uint8)).shape
        torch.Size([2, 3, 32, 32])
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        image_size: int,
        mean: tuple[float, ...],
        std: tuple[float, ...],
        interpolation: str = "bicubic",
        inputs: str = "auto",
    ) -> None:
        super().__init__()
        self.image_size, self.interpolation, self.inputs = image_size, interpolation, inputs
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std, dtype=torch.float32).view(1, 3, 1, 1), persistent=False)

    @torch.no_grad()
    def forward(self, images: Tensor) -> Tensor:
        """``(B, C, H, W)`` uint8 or float in [0, 1] -> ``(B, 3, S, S)`` float32."""
        if self.inputs == "normalised":
            return images.float()
        images = images.float() / 255 if images.dtype == torch.uint8 else images.float()
        size = (self.image_size, self.image_size)
        if images.shape[-2:] != size:
            images = F.interpolate(images, size, mode=self.interpolation, antialias=True, align_corners=False)
            if not torch.compiler.is_compiling():
                # In place: a large batch takes its time here to allocate. torch 2.4 exports nothing of the kind.
                return (images.clamp_(0, 1) - self.mean).div_(self.std)
            images = images.clamp(0, 1)  # bicubic overshoots
        return (images - self.mean) / self.std
