"""The device to compute on, and the precision to compute in."""

import torch

BFLOAT16_WIDTH = 192
"""Least width D at which bfloat16 was measured to be faster on CPUs that multiply it, for one image and for many."""


def default_device(device: str | torch.device | None = None) -> torch.device:
    """``device`` if given, else CUDA if there is a CUDA device, else the CPU; with its number, see :func:`numbered`.

    Example:
        >>> default_device("cpu")
        device(type='cpu')
    """
    return numbered(device or ("cuda" if torch.cuda.is_available() else "cpu"))


def numbered(device: str | torch.device) -> torch.device:
    """``"cuda"`` with the number of the current device, as tensors have it; any other device unchanged.

    Example:
        >>> numbered("cpu"), numbered("cuda:1")
        (device(type='cpu'), device(type='cuda', index=1))
    """
    device = torch.device(device)
    return torch.device("cuda", torch.cuda.current_device()) if device == torch.device("cuda") else device


def working_dtype(precision: str, width: int, device: str | torch.device) -> torch.dtype:
    """The dtype in which a frozen backbone computes.

    Args:
        precision: ``"float32"``, ``"bfloat16"`` or ``"auto"``. The last means bfloat16 on a CUDA device that multiplies
            it in hardware (since Ampere), and on such a CPU (AMX, AVX-512 BF16) for a ViT of at least
            :data:`BFLOAT16_WIDTH`; otherwise float32.
        width: length D of the ViT's tokens.
        device: device that the backbone will run on.

    Example:
        >>> working_dtype("bfloat16", 768, "cpu"), working_dtype("auto", 128, "cpu")
        (torch.bfloat16, torch.float32)
    """
    if precision != "auto":
        return torch.float32 if precision == "float32" else torch.bfloat16
    device = torch.device(device)
    if device.type == "cpu":
        fast = width >= BFLOAT16_WIDTH and _multiplies_bfloat16()
    else:
        fast = device.type == "cuda" and _cuda_multiplies_bfloat16(device)
    return torch.bfloat16 if fast else torch.float32


def _multiplies_bfloat16() -> bool:
    asked = (getattr(torch.cpu, name, None) for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"))
    return any(known() for known in asked if known is not None)  # not every torch has them


def _cuda_multiplies_bfloat16(device: torch.device) -> bool:
    # torch.cuda.is_bf16_supported asks the current device and counts emulation as support.
    return torch.version.hip is not None or torch.cuda.get_device_capability(device) >= (8, 0)
