"""Images in memory; a mini-batch is fetched with one indexing operation instead of image by image."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset, default_collate


class Samples(Sequence):
    """Samples that were fetched together: a sequence of (image, label), which :func:`collate` takes as a whole.

    Args:
        images: ``(B, C, H, W)``.
        labels: ``(B,)`` int64.
    """

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: Any) -> Any:
        return self.images[index], int(self.labels[index])

    def __iter__(self) -> Iterator[tuple[Tensor, int]]:
        return zip(self.images, self.labels.tolist(), strict=True)


def collate(samples: Samples | list) -> list:
    """Samples to a mini-batch: images ``(B, C, H, W)``, labels ``(B,)`` int64 and whatever else they hold."""
    return [samples.images, samples.labels] if isinstance(samples, Samples) else default_collate(samples)


class ImageTensors(Dataset):
    """Images and labels in memory.

    Args:
        images: ``(N, C, H, W)``, on any device.
        labels: ``(N,)`` int64, on the CPU.

    Attributes:
        targets: labels as a list of ints, as Avalanche and torchvision name them.

    Example:
        >>> ImageTensors(torch.zeros(2, 3, 4, 4, dtype=torch.uint8), torch.tensor([5, 6]))[1][1]
        6
    """

    collate_fn = staticmethod(collate)

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        self.images, self.labels, self.targets = images, labels, labels.tolist()

    @property
    def device(self) -> torch.device:
        """The device of the images."""
        return self.images.device

    def to(self, device: str | torch.device) -> "ImageTensors":
        """The same data with the images on a device, so that a model need not wait for them; labels stay on the CPU."""
        return ImageTensors(self.images.to(device), self.labels)

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.images[index], self.targets[index]

    def __getitems__(self, indices: list[int]) -> Samples:
        chosen = torch.tensor(indices)
        # The host would have to wait while a list is copied to another device.
        return Samples(self.images[chosen.to(self.device, non_blocking=True)], self.labels[chosen])
