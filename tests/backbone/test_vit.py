from copy import deepcopy

import pytest
import timm
import torch
from timm.models import VisionTransformer

from avalanche_f2ocl.backbone.vit import PromptableViT


@pytest.fixture
def backbone(vit):
    return PromptableViT(vit)


def test_without_prompts_it_is_the_stock_model_bit_for_bit(backbone, images):
    vit, x = backbone.vit, backbone.prepare(images)
    assert torch.equal(backbone.encode(images), vit.forward_head(vit.forward_features(x), pre_logits=True))


@pytest.mark.parametrize(
    "name", ["vit_small_patch14_reg4_dinov2", "vit_tiny_r_s16_p8_224", "vit_base_patch16_clip_224"]
)
def test_other_vits_of_timm_too(name, draw):
    """Register tokens, a convolutional stem, a norm before the blocks."""
    vit = timm.create_model(name, num_classes=0, img_size=56 if "14" in name else 64, embed_dim=48, num_heads=3)
    backbone = PromptableViT(vit.eval(), normalise="unit")
    x = torch.rand(2, 3, backbone.image_size, backbone.image_size, generator=draw)
    stock = vit.forward_head(vit.forward_features(x), pre_logits=True)
    torch.testing.assert_close(backbone.encode(x), stock, rtol=0, atol=0)
    prompted = backbone.encode(x, torch.randn(1, 3, 48, generator=draw))
    assert prompted.shape == (2, 48) and not torch.allclose(prompted, stock)


def naive(vit, x, prompts, position, readout):
    """The blocks applied to CLS, prompts, patches, written out."""
    patches = vit.patch_embed(x) + vit.pos_embed[:, 1:]
    cls = (vit.cls_token + vit.pos_embed[:, :1]).expand(len(x), -1, -1)
    if position == "cls":
        prompts = prompts + vit.pos_embed[:, :1]
    out = torch.cat([cls, prompts, patches], dim=1)
    for block in vit.blocks:
        out = block(out)
    out = vit.norm(out)
    length = prompts.shape[1]
    return {"cls": out[:, 0], "prompt": out[:, 1 : 1 + length].mean(1), "patch": out[:, 1 + length :].mean(1)}[readout]


@pytest.mark.parametrize("readout", ["cls", "prompt", "patch"])
@pytest.mark.parametrize("position", ["none", "cls"])
def test_prompts_stand_between_prefix_and_patches(vit, images, readout, position, draw):
    backbone = PromptableViT(vit, readout=readout, prompt_position=position)
    prompts = torch.randn(len(images), 5, 128, generator=draw)
    expected = naive(vit, backbone.prepare(images), prompts, position, readout)
    torch.testing.assert_close(backbone.encode(images, prompts), expected)


@pytest.mark.parametrize("prompt_length", [0, 5])
@pytest.mark.parametrize("blocks", [None, (5,), (0, 3, 4)])
def test_layers_are_the_outputs_of_the_chosen_blocks(backbone, images, prompt_length, blocks, draw):
    prompts = torch.randn(1, prompt_length, 128, generator=draw) if prompt_length else None
    tokens, seen = backbone.tokens(images), []
    hooks = [block.register_forward_hook(lambda *args: seen.append(args[2])) for block in backbone.vit.blocks]
    expected = backbone.encode_tokens(tokens, prompts)
    for hook in hooks:
        hook.remove()
    embedding, layers = backbone.encode_layers(tokens, prompts, blocks)
    chosen = [seen[i] for i in blocks or range(6)]
    assert torch.equal(embedding, expected) and layers.shape == (12, len(chosen), 2, 128)
    for ours, block in zip(layers.unbind(1), chosen, strict=True):
        assert torch.equal(ours[:, 0], block[:, 0])
        torch.testing.assert_close(ours[:, 1], block[:, 1 + prompt_length :].mean(1))


def test_patches_are_averaged_by_quarters_of_the_image(backbone, images, draw):
    tokens, prompts = backbone.tokens(images), torch.randn(1, 3, 128, generator=draw)
    _, whole = backbone.encode_layers(tokens, prompts, (2, 5))
    _, cells = backbone.encode_layers(tokens, prompts, (2, 5), grid=2)
    assert cells.shape == (12, 2, 5, 128) and torch.equal(cells[:, :, 0], whole[:, :, 0])
    torch.testing.assert_close(cells[:, :, 1:].mean(2), whole[:, :, 1])


def test_tokens_of_an_enlarged_middle(backbone, images):
    middle = torch.nn.functional.interpolate(images[:, :, 8:24, 8:24].float() / 255, (32, 32), mode="bilinear")
    torch.testing.assert_close(backbone.tokens(images, zoom=2.0), backbone.tokens(middle), rtol=1e-4, atol=1e-5)
    assert torch.equal(backbone.tokens(images, zoom=1.0), backbone.tokens(images))


def test_one_prompt_for_all_and_its_gradient(backbone, images, draw):
    prompt = torch.randn(1, 5, 128, generator=draw).requires_grad_()
    each = prompt.detach().repeat(len(images), 1, 1).requires_grad_()
    shared, single = backbone.encode(images, prompt), backbone.encode(images, each)
    assert torch.equal(shared, single)
    shared.square().sum().backward(), single.square().sum().backward()
    torch.testing.assert_close(prompt.grad, each.grad.sum(0, keepdim=True))


def test_readout_prompt_falls_back_to_cls(vit, images):
    assert torch.equal(PromptableViT(vit, readout="prompt").encode(images), PromptableViT(vit).encode(images))


def test_frozen_and_always_in_evaluation_mode(images):
    vit = VisionTransformer(
        img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=2, num_classes=0, proj_drop_rate=0.5
    )
    backbone = PromptableViT(vit).train()
    assert not any(p.requires_grad for p in backbone.parameters())
    assert torch.equal(backbone.encode(images), backbone.encode(images))
    torch.nn.Sequential(backbone).train()
    assert not any(module.training for module in backbone.modules())


def test_normalisation_comes_from_the_backbone(vit, images):
    assert PromptableViT(vit).prepare.mean.flatten().tolist() == [0.5] * 3
    torch.testing.assert_close(PromptableViT(vit, normalise="unit").prepare(images), images.float() / 255)


def test_what_needs_a_class_token():
    vit = VisionTransformer(
        img_size=32, patch_size=8, embed_dim=32, depth=1, num_heads=2, num_classes=0, class_token=False,
        global_pool="avg",
    )
    with pytest.raises(ValueError, match="readout='cls'.*'auto' and 'patch'"):
        PromptableViT(vit, readout="cls")
    assert PromptableViT(vit).readout == "patch"
    with pytest.raises(ValueError, match="prompt_position='cls'.*'none'"):
        PromptableViT(vit, readout="patch", prompt_position="cls")
    x = torch.rand(2, 3, 32, 32)
    backbone = PromptableViT(vit.eval(), readout="patch", normalise="unit")
    assert torch.equal(backbone.encode(x), vit.forward_head(vit.forward_features(x), pre_logits=True))


def test_name_has_the_full_tag(vit):
    assert PromptableViT(vit).name == "micro_vit"
    tiny = timm.create_model("vit_tiny_patch16_224.augreg_in21k")
    assert PromptableViT(tiny).name == "vit_tiny_patch16_224.augreg_in21k"


def test_bfloat16_gives_float32_embeddings_near_those_of_float32(vit, images, draw):
    exact, fast = PromptableViT(vit), PromptableViT(vit, precision="bfloat16")
    prompts = [torch.randn(1, 5, 128, generator=draw)]
    prompts.append(prompts[0].clone())
    for backbone, prompt in zip((exact, fast), prompts, strict=True):
        prompt.requires_grad_()
        backbone.encode(images, prompt).square().sum().backward()
    z, expected = fast.encode(images, prompts[1]), exact.encode(images, prompts[0])
    assert z.dtype == fast.encode_layers(fast.tokens(images))[1].dtype == prompts[1].grad.dtype == torch.float32
    assert not torch.equal(z, expected) and torch.cosine_similarity(z, expected).min() > 0.999
    assert torch.cosine_similarity(prompts[0].grad.flatten(), prompts[1].grad.flatten(), dim=0) > 0.99
    assert fast.checksum == exact.checksum and vit.cls_token.dtype == torch.float32


def test_compiled_blocks_give_the_same_embeddings_and_gradients(monkeypatch, vit, images, draw):
    """With a backend that needs no C++ compiler."""
    compile_module = torch.nn.Module.compile
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self: compile_module(self, backend="eager"))
    plain, compiled = PromptableViT(vit), PromptableViT(deepcopy(vit), compile=True)
    assert all(block._compiled_call_impl is not None for block in compiled.vit.blocks)
    assert compiled.state_dict().keys() == plain.state_dict().keys() and compiled.checksum == plain.checksum
    prompts = [torch.randn(1, 5, 128, generator=draw).requires_grad_()]
    prompts.append(prompts[0].detach().clone().requires_grad_())
    z = [b.encode(images[:3], p) for b, p in zip((plain, compiled), prompts, strict=True)]
    for one in z:
        one.square().sum().backward()
    torch.testing.assert_close(*z)
    torch.testing.assert_close(prompts[0].grad, prompts[1].grad)
    torch.testing.assert_close(compiled.encode_layers(compiled.tokens(images[:3]))[1],
                               plain.encode_layers(plain.tokens(images[:3]))[1])
