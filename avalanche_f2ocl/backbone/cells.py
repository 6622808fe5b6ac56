"""Means over the patches of parts of an image."""

from torch import Tensor
from torch.nn import functional as F


def cell_means(patches: Tensor, size: tuple[int, int], grid: int) -> Tensor:
    """Averages patches over the cells of a grid.

    Args:
        patches: ``(B, H * W, D)``, row by row.
        size: H and W.
        grid: cells a side; if H or W is no multiple of it, neighbouring cells share patches.

    Returns:
        ``(B, grid * grid, D)``, row by row.

    Example:
        >>> import torch
        >>> cell_means(torch.arange(16.0).view(1, 16, 1), (4, 4), 2).flatten().tolist()
        [2.5, 4.5, 10.5, 12.5]
    """
    if grid == 1:
        return patches.mean(1, keepdim=True)
    maps = patches.transpose(1, 2).unflatten(2, size)
    return F.adaptive_avg_pool2d(maps, grid).flatten(2).transpose(1, 2)
