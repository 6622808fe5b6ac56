"""These tests compare states and answers of every strategy, so the smallest ViT that all of them take will do."""

import pytest
import torch
from timm.models import VisionTransformer


@pytest.fixture(scope="session")
def vit():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return VisionTransformer(img_size=32, patch_size=8, embed_dim=32, depth=5, num_heads=2, num_classes=0)
