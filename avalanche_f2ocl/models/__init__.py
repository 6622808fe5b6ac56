"""Models that learn and predict without Avalanche, as plain PyTorch modules; nothing here imports Avalanche."""

from avalanche_f2ocl.models.base import BaseModel
from avalanche_f2ocl.models.export import export_prediction
from avalanche_f2ocl.models.f2ocl import F2OCLModel
from avalanche_f2ocl.models.frozen import FrozenModel, ViTNCMModel
from avalanche_f2ocl.models.loading import load_model

__all__ = ["BaseModel", "F2OCLModel", "FrozenModel", "ViTNCMModel", "export_prediction", "load_model"]
