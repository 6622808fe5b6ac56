"""F2OCL in Avalanche's training loop, and what every strategy of this package does there."""

from avalanche_f2ocl.strategies.base import BaseStrategy
from avalanche_f2ocl.strategies.checkpoint_plugin import CheckpointPlugin
from avalanche_f2ocl.strategies.f2ocl import F2OCLStrategy

__all__ = ["BaseStrategy", "CheckpointPlugin", "F2OCLStrategy"]
