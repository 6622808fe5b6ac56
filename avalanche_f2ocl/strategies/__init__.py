"""F2OCL as an Avalanche strategy, and what all strategies of this package have in common."""

from avalanche_f2ocl.strategies.base import BaseStrategy
from avalanche_f2ocl.strategies.checkpoint_plugin import CheckpointPlugin
from avalanche_f2ocl.strategies.f2ocl import F2OCLStrategy

__all__ = ["BaseStrategy", "CheckpointPlugin", "F2OCLStrategy"]
