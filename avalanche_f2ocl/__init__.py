"""Rehearsal-free, task-free online class-incremental learning on frozen ViTs, for Avalanche."""

from avalanche_f2ocl.baselines import ViTNCM
from avalanche_f2ocl.boundary_free_streams import (
    drifting_stream,
    long_tailed_stream,
    recurring_stream,
    shuffled_stream,
    si_blurry_stream,
)
from avalanche_f2ocl.checkpoint_plugin import CheckpointPlugin
from avalanche_f2ocl.metrics import f2ocl_metrics
from avalanche_f2ocl.model import F2OCLModel
from avalanche_f2ocl.plugins import (
    ContrastivePromptPlugin,
    KeyUpdatePlugin,
    PromptGrowthPlugin,
    PrototypeUpdatePlugin,
)
from avalanche_f2ocl.rehearsal_check import check_rehearsal_free, held_bytes
from avalanche_f2ocl.strategy import F2OCLStrategy
from avalanche_f2ocl.streams import class_incremental_stream

__version__ = "0.1.0"

__all__ = [
    "CheckpointPlugin",
    "ContrastivePromptPlugin",
    "F2OCLModel",
    "F2OCLStrategy",
    "KeyUpdatePlugin",
    "PromptGrowthPlugin",
    "PrototypeUpdatePlugin",
    "ViTNCM",
    "check_rehearsal_free",
    "class_incremental_stream",
    "drifting_stream",
    "f2ocl_metrics",
    "held_bytes",
    "long_tailed_stream",
    "recurring_stream",
    "shuffled_stream",
    "si_blurry_stream",
]
