"""Rehearsal-free, task-free online class-incremental learning on frozen ViTs, for Avalanche.

Names are imported when they are asked for: a model alone does not need Avalanche, whose import takes seconds.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Types stand in __init__.pyi.
_HOMES = {
    "CheckpointPlugin": "checkpoint_plugin",
    "ContrastivePromptPlugin": "plugins",
    "F2OCLModel": "model",
    "F2OCLStrategy": "strategy",
    "KeyUpdatePlugin": "plugins",
    "PromptGrowthPlugin": "plugins",
    "PrototypeUpdatePlugin": "plugins",
    "ViTNCM": "baselines.vit_ncm",
    "ViTNCMModel": "vit_ncm_model",
    "check_rehearsal_free": "rehearsal_check",
    "class_incremental_stream": "streams",
    "drifting_stream": "boundary_free_streams",
    "f2ocl_metrics": "metrics",
    "held_bytes": "rehearsal_check",
    "long_tailed_stream": "boundary_free_streams",
    "online_stream": "streams",
    "recurring_stream": "boundary_free_streams",
    "shuffled_stream": "boundary_free_streams",
    "si_blurry_stream": "boundary_free_streams",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
