"""What F2OCL is compared with, one file each."""

from avalanche_f2ocl.baselines.er import ER
from avalanche_f2ocl.baselines.lwf import LwF
from avalanche_f2ocl.baselines.random_prompt import RandomPrompt
from avalanche_f2ocl.baselines.vit_ncm import ViTNCM

__all__ = ["ER", "LwF", "RandomPrompt", "ViTNCM"]
