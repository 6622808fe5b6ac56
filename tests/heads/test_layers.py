import pytest
from timm.models import VisionTransformer

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.heads.layers import MAX_BYTES, choose_layers


def backbone(depth, dim=12):
    return PromptableViT(
        VisionTransformer(img_size=16, patch_size=8, embed_dim=dim, depth=depth, num_heads=2, num_classes=0)
    )


class Shape:
    """Of a backbone too large to make."""

    has_class_token = True

    def __init__(self, depth, dim):
        self.vit, self.embed_dim = type("ViT", (), {"blocks": range(depth)}), dim


@pytest.mark.parametrize(
    "depth, options, blocks, widths",
    [
        (12, {}, range(12), (96, 96, 96)),
        (7, {}, range(7), (72, 72, 24)),
        (2, {}, range(2), (24, 24)),
        (6, {"blocks": 4, "blocks_per_head": 4}, range(2, 6), (96,)),
        (2, {"blocks": 4, "blocks_per_head": 4}, range(2), (48,)),
        (6, {"blocks": 3, "grid": 2}, range(3, 6), (60, 60, 60)),
    ],
)
def test_blocks_and_widths(depth, options, blocks, widths):
    layers = choose_layers(backbone(depth), **options)
    assert layers.blocks == tuple(blocks) and layers.widths == widths


@pytest.mark.parametrize(
    "dim, grid, blocks, heads, features",
    [
        (192, 1, 12, 3, 1536),  # ViT-Ti
        (192, 2, 12, 6, 1920),
        (384, 2, 12, 12, 1920),  # ViT-S
        (768, 1, 12, 12, 1536),  # ViT-B
        (768, 2, 3, 3, 3840),
    ],
)
def test_second_moments_of_a_pass_stay_within_the_limit(dim, grid, blocks, heads, features):
    layers = choose_layers(Shape(12, dim), grid=grid)
    assert len(layers.blocks) == blocks and layers.widths == (features,) * heads
    assert layers.blocks[-1] == 11 and 8 * heads * features**2 <= MAX_BYTES
