import pytest
from timm.models import VisionTransformer

from avalanche_f2ocl.baselines import DualPrompt


def test_the_published_sizes(vit):
    model = DualPrompt(backbone=vit, evaluator=None).model
    assert model.prompts.general.shape == (2, 2, 5, 128)
    assert model.prompts.expert.prompts.shape == (10, 3, 2, 20, 128)
    assert model.config.pull == 1 and model.backbone.readout == "cls"


def test_a_backbone_with_too_few_blocks():
    vit = VisionTransformer(img_size=32, patch_size=8, embed_dim=16, depth=4, num_heads=2)
    with pytest.raises(ValueError, match="4 blocks: DualPrompt needs at least 5"):
        DualPrompt(backbone=vit, evaluator=None)


@pytest.mark.parametrize(
    "option, error, message",
    [
        (dict(pool_size=-1), ValueError, "pool_size=-1"),
        (dict(g_length="2"), TypeError, "g_length='2'"),
        (dict(e_length=0), ValueError, "e_length=0"),
        (dict(prompt_init="ones"), ValueError, "prompt_init='ones'"),
    ],
    ids=str,
)
def test_options_out_of_range(vit, option, error, message):
    with pytest.raises(error, match=message):
        DualPrompt(backbone=vit, evaluator=None, **option)
