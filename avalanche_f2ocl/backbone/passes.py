"""A ViT's forward pass over tokens and prompts, as pure functions."""

from collections.abc import Sequence

import torch
from torch import Tensor

from avalanche_f2ocl.backbone.cells import cell_means
from avalanche_f2ocl.backbone.families import AnyViT, block_calls, has_class_token


def last_outputs(vit: AnyViT, tokens: Tensor, length: int = 0) -> Tensor:
    """The outputs of the last block.

    Args:
        vit: a ViT of one of the families that can be prompted.
        tokens: ``(B, T, D)``.
        length: number of prompts among the tokens, behind the prefix tokens.

    Returns:
        ``(B, T, D)``, before the last norm.
    """
    for block in block_calls(vit, length):
        tokens = block(tokens)
    return tokens


def layer_outputs(
    vit: AnyViT, tokens: Tensor, length: int, blocks: Sequence[int], grid: int = 1
) -> tuple[Tensor, Tensor]:
    """The outputs of the last block, and layers from the outputs of earlier blocks.

    Args:
        vit: a ViT of one of the families that can be prompted.
        tokens: ``(B, T, D)``.
        length: number of prompts among the tokens, behind the prefix tokens.
        blocks: indices of blocks, ascending.
        grid: patches are averaged over ``grid * grid`` cells of the image.

    Returns:
        The last outputs ``(B, T, D)``, and layers ``(B, blocks, K, D)`` float32: the class token, if there is one, and
        the means over cells.
    """
    first_patch, outputs = vit.num_prefix_tokens + length, []
    for index, block in enumerate(block_calls(vit, length)):
        tokens = block(tokens)
        if index in blocks:
            parts = [tokens[:, :1]] if has_class_token(vit) else []
            cells = cell_means(tokens[:, first_patch:], vit.patch_embed.grid_size, grid)
            outputs.append(torch.cat([*parts, cells], dim=1).float())
    return tokens, torch.stack(outputs, dim=1)


def insert_prompts(vit: AnyViT, tokens: Tensor, prompts: Tensor, position: str = "none") -> Tensor:
    """Puts prompts ``(B or 1, L, D)`` behind the prefix tokens of ``tokens (B, T, D)``: ``(B, T + L, D)``.

    ``position``: ``"cls"`` adds the class token's position embedding to them.
    """
    if position == "cls":
        prompts = prompts + vit.pos_embed[:, :1]
    # With len(tokens), an exported program would take mini-batches of one size only.
    prompts = prompts.to(tokens.dtype).expand(tokens.shape[0], -1, -1)
    prefix = vit.num_prefix_tokens
    return torch.cat([tokens[:, :prefix], prompts, tokens[:, prefix:]], dim=1)


def read_out(vit: AnyViT, outputs: Tensor, length: int, readout: str) -> Tensor:
    """The embedding ``(B, D)`` float32 of the last block's outputs ``(B, T, D)`` with ``length`` prompts among them.

    ``readout`` is the resolved one of :class:`avalanche_f2ocl.backbone.PromptableViT`, not ``"auto"``.
    """
    prefix, x = vit.num_prefix_tokens, vit.norm(outputs)
    if readout == "patch":
        x = x[:, prefix + length :].mean(1)
    elif readout == "prompt" and length > 0:
        x = x[:, prefix : prefix + length].mean(1)
    elif readout == "pool":
        x = vit.pool(torch.cat([x[:, :prefix], x[:, prefix + length :]], dim=1))
    elif readout == "distilled":
        x = x[:, :2].mean(1)
    else:
        x = x[:, 0]
    return vit.fc_norm(x).float()
