import pytest
import torch
from timm.models import VisionTransformer

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.heads.layers import Layers
from avalanche_f2ocl.models.early import plan_pass


@pytest.fixture(scope="module")
def backbone(vit):
    return PromptableViT(vit)


@pytest.mark.parametrize("depth, block", [(1, 0), (2, 0), (6, 1), (12, 2), (24, 5)])
def test_the_early_block_ends_the_first_quarter(depth, block):
    vit = VisionTransformer(img_size=8, patch_size=4, embed_dim=4, depth=depth, num_heads=1, num_classes=0)
    plan = plan_pass(PromptableViT(vit), None)
    assert (plan.blocks, plan.seen) == ((block,), (False,))


@pytest.mark.parametrize("blocks", [(0, 1, 2, 3, 4, 5), (4, 5), (1, 5), ()])
def test_the_head_sees_its_blocks_and_no_other(backbone, images, blocks):
    """Whichever of them familiarity sees."""
    tokens = backbone.tokens(images[:3])
    plan = plan_pass(backbone, Layers(blocks, 2, ()) if blocks else None)
    _, outputs = backbone.encode_layers(tokens, None, plan.blocks, plan.grid)
    layers, early = plan.parts(outputs)
    if blocks:
        assert torch.equal(layers, backbone.encode_layers(tokens, None, blocks, 2)[1])
    else:
        assert layers is None
    patches = backbone.encode_layers(tokens, None, [1])[1][:, 0, 1]
    torch.testing.assert_close(early, patches)


def test_without_a_class_token_all_outputs_are_patches():
    vit = VisionTransformer(
        img_size=8, patch_size=4, embed_dim=4, depth=4, num_heads=1, num_classes=0, class_token=False, global_pool="avg"
    )
    backbone = PromptableViT(vit)
    plan = plan_pass(backbone, None)
    _, outputs = backbone.encode_layers(backbone.tokens(torch.rand(2, 3, 8, 8)), None, plan.blocks)
    assert torch.equal(plan.parts(outputs)[1], outputs[:, 0, 0])
