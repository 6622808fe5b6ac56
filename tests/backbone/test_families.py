"""Every family's embedding is the stock model's, and prompts have no position of their own."""

from types import SimpleNamespace

import pytest
import timm
import torch
from timm.models import VisionTransformer
from torch import nn

from avalanche_f2ocl import F2OCLModel, ViTNCMModel
from avalanche_f2ocl.backbone import PromptableViT
from avalanche_f2ocl.backbone.families import check_vit, rotations, stock_readout
from avalanche_f2ocl.baselines.coda_prompt import CODAPromptModel
from avalanche_f2ocl.baselines.dualprompt import DualPromptModel
from avalanche_f2ocl.baselines.mvp import MVPModel
from avalanche_f2ocl.baselines.single_prompt import SinglePromptModel

READOUTS = {
    "vit_tiny_patch16_224": "cls",
    "vit_base_patch16_siglip_224": "pool",
    "vit_base_patch16_siglip_gap_224": "patch",
    "vit_base_patch16_gap_224": "patch",
    "eva_large_patch14_196": "patch",
    "deit_tiny_distilled_patch16_224": "distilled",
    "vit_small_patch14_reg4_dinov2": "cls",
    "eva02_tiny_patch14_224": "patch",
    "eva02_base_patch16_clip_224": "cls",
    "vit_small_patch16_dinov3": "patch",
    "vit_pe_core_tiny_patch16_384": "pool",
    "vit_small_patch16_rope_mixed_224": "cls",
    "vit_small_patch16_rope_ape_224": "cls",
}
"""By architecture; those that the installed timm knows are tried, with two blocks."""


@pytest.fixture(scope="module", params=[name for name in READOUTS if timm.is_model(name)])
def stock(request):
    patch = 14 if "patch14" in request.param else 16
    torch.manual_seed(0)
    vit = timm.create_model(request.param, num_classes=0, img_size=4 * patch, depth=2).eval()
    with torch.no_grad():
        for parameter in vit.parameters():  # some are born as zeros, which would hide a difference
            parameter.add_(0.02 * torch.randn_like(parameter))
    vit.asked_for = request.param
    return vit


@pytest.fixture
def images(stock):
    size = stock.patch_embed.img_size
    return torch.rand(4, 3, *size, generator=torch.Generator().manual_seed(1))


def test_without_prompts_the_embedding_is_the_stock_models(stock, images):
    backbone = PromptableViT(stock, precision="float32")
    assert backbone.readout == READOUTS[stock.asked_for]
    with torch.no_grad():
        expected = stock.forward_head(stock.forward_features(backbone.prepare(images)), pre_logits=True)
    torch.testing.assert_close(backbone.encode(images), expected, rtol=1e-5, atol=1e-5)
    layers = backbone.encode_layers(backbone.tokens(images))
    torch.testing.assert_close(layers[0], expected, rtol=1e-5, atol=1e-5)


def test_prompts_stand_between_prefix_tokens_and_patches_without_a_position(stock, images):
    """Against the stock blocks, told that prompts are prefix tokens, which they leave unrotated."""
    backbone, prompts = PromptableViT(stock, precision="float32"), torch.randn(4, 3, stock.embed_dim)
    prefix, tokens = stock.num_prefix_tokens, backbone.tokens(images)
    x = torch.cat([tokens[:, :prefix], prompts, tokens[:, prefix:]], dim=1)
    angles = rotations(stock, 0)
    for block, angle in zip(stock.blocks, angles, strict=True):
        block.attn.num_prefix_tokens = prefix + 3
        with torch.no_grad():
            x = block(x) if angle is None else block(x, rope=angle)
        block.attn.num_prefix_tokens = prefix
    x = stock.norm(torch.cat([x[:, :prefix], x[:, prefix + 3 :]], dim=1))
    expected = stock.forward_head(x, pre_logits=True)
    torch.testing.assert_close(backbone.encode(images, prompts), expected, rtol=1e-4, atol=1e-5)
    assert (backbone.encode(images, prompts) - backbone.encode(images)).abs().max() > 1e-3


def test_prompts_learn_and_a_file_with_its_backbone_opens(stock, images, tmp_path, monkeypatch):
    model = F2OCLModel(stock, prompt_length=2)
    before = model.backbone.checksum
    model.learn(images, [0, 1, 0, 1])
    model.learn(images, [1, 1, 0, 0])
    assert torch.isfinite(model(images)).all()
    model.save(tmp_path / "learned.safetensors", backbone=True)
    create = timm.create_model
    monkeypatch.setattr(timm, "create_model", lambda *args, **kwargs: create(*args, depth=2, **kwargs))
    again = F2OCLModel.from_file(tmp_path / "learned.safetensors")
    assert again.backbone.checksum == before
    torch.testing.assert_close(again(images), model(images))


def test_layers_hold_class_token_and_mean_patch(stock, images):
    backbone = PromptableViT(stock, precision="float32")
    prefix = stock.num_prefix_tokens
    parts, outputs = 1 + backbone.has_class_token, []
    hooks = [block.register_forward_hook(lambda block, args, output: outputs.append(output)) for block in stock.blocks]
    _, layers = backbone.encode_layers(backbone.tokens(images))
    for hook in hooks:
        hook.remove()
    assert layers.shape == (4, 2, parts, stock.embed_dim)
    torch.testing.assert_close(layers[:, 1, -1], outputs[1][:, prefix:].mean(1))
    if backbone.has_class_token:
        torch.testing.assert_close(layers[:, 0, 0], outputs[0][:, 0])


def test_methods_with_prefixes_refuse_other_attention(stock):
    if isinstance(stock, VisionTransformer):
        with pytest.raises(ValueError, match="backbone has 2 blocks: DualPrompt needs at least 5"):
            DualPromptModel(stock, lr=0.1)
        return
    for make in (DualPromptModel, CODAPromptModel, MVPModel, SinglePromptModel):
        options = {"prompt_position": "none"} if make is SinglePromptModel else {}
        with pytest.raises(TypeError, match="class Eva: .* needs a VisionTransformer"):
            make(stock, lr=0.1, **options)


def test_an_untagged_model_of_timm_opens_again(tmp_path):
    """timm has no weights for it, and names its configuration "untrained"."""
    vit = timm.create_model("vit_base_patch16_xp_224", num_classes=0, img_size=32)
    images = torch.rand(2, 3, 32, 32)
    model = ViTNCMModel(vit)
    model.learn(images, [0, 1])
    model.save(tmp_path / "learned.safetensors", backbone=True)
    assert torch.equal(ViTNCMModel.from_file(tmp_path / "learned.safetensors")(images), model(images))


def test_prompts_are_rotated_by_nothing_and_patches_as_without_them():
    vit = timm.create_model("eva02_tiny_patch14_224", num_classes=0, img_size=28, depth=1)
    plain, padded = rotations(vit, 0)[0], rotations(vit, 3)[0]
    sines, cosines = padded.chunk(2, dim=-1)
    assert torch.equal(padded[3:], plain) and sines[:3].abs().sum() == 0 and (cosines[:3] == 1).all()


def test_an_unusual_pooling_is_the_models_own():
    def pooling(**options):
        defaults = dict(attn_pool=None, pool_include_prefix=False, global_pool="token")
        return stock_readout(SimpleNamespace(**(defaults | options)))

    assert [pooling(), pooling(global_pool="avg"), pooling(global_pool="avgmax")] == ["cls", "patch", "pool"]
    assert pooling(global_pool="avg", pool_include_prefix=True) == "pool"
    assert pooling(attn_pool=nn.Identity()) == "pool"


@pytest.mark.parametrize("name", ["vit_tiny_r_s16_p8_224", "vit_base_mci_224"])
def test_a_convolutional_stem_is_counted_by_its_own_channels(name):
    vit = timm.create_model(name, num_classes=0, img_size=64, depth=1)
    assert check_vit(vit, name) is vit
    prompts = torch.zeros(1, 2, vit.embed_dim)
    assert PromptableViT(vit).encode(torch.rand(2, 3, 64, 64), prompts).shape == (2, vit.embed_dim)
