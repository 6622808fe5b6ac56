"""Forward passes that also give what familiarity sees: patches after the first quarter of the blocks."""

from typing import NamedTuple

from torch import Tensor

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.heads.layers import Layers


class PassPlan(NamedTuple):
    """Which blocks' outputs a pass gives.

    Attributes:
        blocks: indices of the blocks, ascending.
        grid: patches are averaged over ``grid * grid`` cells of the image.
        early: place among ``blocks`` of the last block of the first quarter.
        seen: whether the head sees each of the blocks.
        patches: place of the first patch mean among a block's outputs, 1 behind a class token and 0 without.
    """

    blocks: tuple[int, ...]
    grid: int
    early: int
    seen: tuple[bool, ...]
    patches: int

    def parts(self, layers: Tensor) -> tuple[Tensor | None, Tensor]:
        """The outputs ``(B, blocks, K, D)`` that the head sees, None if it sees none, and the mean of early patches.

        Example:
            >>> import torch
            >>> layers = torch.arange(6.0).view(1, 2, 3, 1)
            >>> head, early = PassPlan((0, 5), 1, 0, (False, True), 1).parts(layers)
            >>> head.flatten().tolist(), early.tolist()
            ([3.0, 4.0, 5.0], [[1.5]])
        """
        early = layers[:, self.early, self.patches :].mean(1)
        if not any(self.seen):
            return None, early
        places = [place for place, seen in enumerate(self.seen) if seen]
        return layers if all(self.seen) else layers[:, places], early


def plan_pass(backbone: PromptableViT, layers: Layers | None) -> PassPlan:
    """The plan of a pass for a head that sees ``layers``; None if it sees none.

    Example:
        >>> from avalanche_f2ocl.backbone.load import load_backbone
        >>> plan_pass(load_backbone("micro_vit"), Layers((4, 5), 1, (512,))).blocks
        (1, 4, 5)
    """
    block = -(-len(backbone.vit.blocks) // 4) - 1
    seen = () if layers is None else layers.blocks
    blocks = tuple(sorted({*seen, block}))
    grid = 1 if layers is None else layers.grid
    return PassPlan(blocks, grid, blocks.index(block), tuple(b in seen for b in blocks), int(backbone.has_class_token))
