"""The methods that F2OCL is compared with, one file for each."""

from avalanche_f2ocl.baselines.coda_prompt import CODAPrompt
from avalanche_f2ocl.baselines.dualprompt import DualPrompt
from avalanche_f2ocl.baselines.er import ER
from avalanche_f2ocl.baselines.frozen import FrozenBackbone, ViTNCM
from avalanche_f2ocl.baselines.l2p import L2P
from avalanche_f2ocl.baselines.linear import LinearStrategy
from avalanche_f2ocl.baselines.lwf import LwF
from avalanche_f2ocl.baselines.mvp import MVP
from avalanche_f2ocl.baselines.random_prompt import RandomPrompt
from avalanche_f2ocl.baselines.single_prompt import SinglePrompt

__all__ = [
    "ER",
    "L2P",
    "MVP",
    "CODAPrompt",
    "DualPrompt",
    "FrozenBackbone",
    "LinearStrategy",
    "LwF",
    "RandomPrompt",
    "SinglePrompt",
    "ViTNCM",
]
