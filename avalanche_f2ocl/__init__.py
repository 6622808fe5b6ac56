"""Rehearsal-free, task-free online class-incremental learning on frozen ViTs, for Avalanche.

Names are imported when they are first used: a model alone does not need Avalanche, whose import takes seconds.
"""

from importlib import import_module
from typing import Any

__version__ = "0.2.0"

# Types are declared in __init__.pyi.
_HOMES = {
    "BeginBatchPlugin": "strategies.plugins",
    "CheckpointPlugin": "strategies.checkpoint_plugin",
    "ContrastivePromptPlugin": "strategies.plugins",
    "F2OCLClassifier": "models.scikit_learn",
    "F2OCLConfig": "config",
    "F2OCLModel": "models.f2ocl",
    "F2OCLStrategy": "strategies.f2ocl",
    "FrozenBackbone": "baselines.frozen",
    "FrozenModel": "models.frozen",
    "KeyUpdatePlugin": "strategies.plugins",
    "PromptGrowthPlugin": "strategies.plugins",
    "PrototypeUpdatePlugin": "strategies.plugins",
    "UNKNOWN": "models.answers",
    "ViTNCM": "baselines.frozen",
    "ViTNCMModel": "models.frozen",
    "check_rehearsal_free": "rehearsal.check",
    "class_incremental_stream": "streams.class_incremental",
    "domain_incremental_stream": "streams.domain_incremental",
    "drifting_stream": "streams.boundary_free",
    "export_onnx": "models.onnx",
    "export_prediction": "models.export",
    "f2ocl_metrics": "metrics.f2ocl",
    "held_bytes": "rehearsal.check",
    "load_model": "models.loading",
    "long_tailed_stream": "streams.boundary_free",
    "online_stream": "streams.online",
    "recurring_stream": "streams.boundary_free",
    "register": "extensions",
    "run_anytime": "evaluation.anytime",
    "run_online": "evaluation.by_groups",
    "shuffled_stream": "streams.boundary_free",
    "si_blurry_stream": "streams.boundary_free",
    "training_metrics": "metrics.training",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "avalanche":
            raise
        message = f"{__name__}.{name} needs Avalanche, which is not installed: pip install avalanche-lib"
        raise ModuleNotFoundError(message, name=error.name) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
