"""Which layers of a ViT the heads see, and which layers share a head."""

from typing import NamedTuple

from avalanche_f2ocl.backbone.vit import PromptableViT

MAX_BYTES = 360_000_000
"""Limit for the second moments of the heads on one pass's layers, so that two passes stay below 720 MB."""
MAX_WIDTH = 2048
"""Most features of a head on several blocks: solving such a head takes a second."""
MIN_HEADS = 3
"""Early, middle and late blocks have heads of their own, so that the better ones can count more."""


class Layers(NamedTuple):
    """The part of a pass's layers that heads see.

    Attributes:
        blocks: indices of the blocks, ascending.
        grid: patches are averaged over ``grid * grid`` cells of the image.
        widths: number of features of each head; each head sees consecutive blocks.
    """

    blocks: tuple[int, ...]
    grid: int
    widths: tuple[int, ...]


def choose_layers(
    backbone: PromptableViT, blocks: int | None = None, blocks_per_head: int | None = None, grid: int = 1
) -> Layers:
    """Chooses blocks and shares them out among heads.

    Args:
        backbone: the ViT.
        blocks: number of blocks, counted from the last; all if the ViT has fewer. None for all blocks or, if their
            second moments took more than ``MAX_BYTES``, for every k-th block from the last, with the least k that fits.
        blocks_per_head: consecutive blocks that share a head; None for as many as leave ``MIN_HEADS`` heads of at most
            ``MAX_WIDTH`` features.
        grid: patches are averaged over ``grid * grid`` cells of the image.

    Example:
        >>> from avalanche_f2ocl.backbone.load import load_backbone
        >>> choose_layers(load_backbone("micro_vit"))
        Layers(blocks=(0, 1, 2, 3, 4, 5), grid=1, widths=(512, 512, 512))
    """
    depth, block_width = len(backbone.vit.blocks), (grid**2 + backbone.has_class_token) * backbone.embed_dim
    if blocks is not None:
        chosen = tuple(range(max(0, depth - blocks), depth))
        return Layers(chosen, grid, _widths(len(chosen), block_width, blocks_per_head))
    for step in range(1, depth + 1):
        chosen = tuple(range(depth - 1, -1, -step))[::-1]
        widths = _widths(len(chosen), block_width, blocks_per_head)
        if 8 * sum(width**2 for width in widths) <= MAX_BYTES:
            break
    return Layers(chosen, grid, widths)


def _widths(blocks: int, block_width: int, per_head: int | None) -> tuple[int, ...]:
    if per_head is None:
        per_head = max(1, min(-(-blocks // MIN_HEADS), MAX_WIDTH // block_width))
    return tuple(min(per_head, blocks - first) * block_width for first in range(0, blocks, per_head))
