"""The frozen ViT: loading, preprocessing, prompts among its tokens, and speed on its device."""

from avalanche_f2ocl.backbone.load import load_backbone
from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.backbone.weights import load_vit

__all__ = ["PromptableViT", "load_backbone", "load_vit"]
