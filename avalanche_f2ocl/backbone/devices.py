"""Where to compute, and in which precision."""

import torch

BFLOAT16_WIDTH = 192
"""Width D from which bfloat16 was measured faster on CPUs that multiply it, for one image and for many."""


def default_device(device: str | torch.device | None = None) -> torch.device:
    """``device``, or CUDA if there is one, else the CPU."""
    return torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))


def working_dtype(precision: str, width: int, device: str | torch.device) -> torch.dtype:
    """What a frozen backbone computes in.

    Args:
        precision: ``"float32"``, ``"bfloat16"``; or ``"auto"``, bfloat16 on CUDA, and on a CPU that
            multiplies it (AMX, AVX-512 BF16) for a ViT of at least :data:`BFLOAT16_WIDTH`.
        width: length D of the ViT's tokens.
        device: where it is going to run.

    Example:
        >>> working_dtype("auto", 768, "cuda"), working_dtype("auto", 128, "cpu")
        (torch.bfloat16, torch.float32)
    """
    if precision != "auto":
        return torch.float32 if precision == "float32" else torch.bfloat16
    if torch.device(device).type == "cpu":
        return torch.bfloat16 if width >= BFLOAT16_WIDTH and _multiplies_bfloat16() else torch.float32
    return torch.bfloat16 if torch.device(device).type == "cuda" else torch.float32


def _multiplies_bfloat16() -> bool:
    asked = (getattr(torch.cpu, name, None) for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"))
    return any(known() for known in asked if known is not None)  # not in every torch
