"""A ViT's forward pass over tokens with prompts among them, as pure functions."""

from collections.abc import Sequence

import torch
from torch import Tensor

from avalanche_f2ocl.backbone.cells import cell_means
from avalanche_f2ocl.backbone.families import AnyViT, block_calls, has_class_token


def last_outputs(vit: AnyViT, tokens: Tensor, length: int = 0) -> Tensor:
    """What the last block puts out.

    Args:
        vit: of a family that takes prompts.
        tokens: ``(B, T, D)``.
        length: prompts among them, behind the prefix tokens.

    Returns:
        ``(B, T, D)``, before the last norm.
    """
    for block in block_calls(vit, length):
        tokens = block(tokens)
    return tokens


def layer_outputs(
    vit: AnyViT, tokens: Tensor, length: int, blocks: Sequence[int], grid: int = 1
) -> tuple[Tensor, Tensor]:
    """The same, and what some blocks put out on the way.

    Args:
        vit, tokens, length: as :func:`last_outputs`.
        blocks: indices, ascending.
        grid: patches are averaged over ``grid * grid`` cells.

    Returns:
        The last outputs ``(B, T, D)``, and ``(B, blocks, K, D)`` float32: the class token, where there is one, and the
        means over cells.
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
    # Not len(tokens): an exported program would then take mini-batches of one size.
    prompts = prompts.to(tokens.dtype).expand(tokens.shape[0], -1, -1)
    prefix = vit.num_prefix_tokens
    return torch.cat([tokens[:, :prefix], prompts, tokens[:, prefix:]], dim=1)


def read_out(vit: AnyViT, outputs: Tensor, length: int, readout: str) -> Tensor:
    """The embedding ``(B, D)`` float32 of the last block's outputs ``(B, T, D)`` with ``length`` prompts among them.

    ``readout``: as :class:`avalanche_f2ocl.backbone.PromptableViT` has resolved it.
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
