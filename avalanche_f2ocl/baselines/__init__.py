"""What F2OCL is compared with, one file each."""

from avalanche_f2ocl.baselines.vit_ncm import ViTNCM

__all__ = ["ViTNCM"]
