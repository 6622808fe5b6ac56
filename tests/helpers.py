"""What several test files need."""

from collections.abc import Iterator

from torch import Tensor

from avalanche_f2ocl.testing.running import as_tensors, assert_same_state, learned, train_online

__all__ = ["as_tensors", "assert_same_state", "learned", "mini_batches", "train_online"]


def mini_batches(images: Tensor, labels: Tensor, size: int = 4) -> Iterator[tuple[Tensor, Tensor]]:
    """Images and labels by mini-batch."""
    return zip(images.split(size), labels.split(size), strict=True)
