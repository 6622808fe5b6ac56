"""Attention in float32 where its gradient is slow."""

from contextlib import nullcontext

import pytest
import torch
from torch.nn import functional as F

from avalanche_f2ocl.backbone.attention import Float32Attention, gradient_attention
from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.baselines.prefix import prefix_tuning


def test_it_computes_in_float32(draw):
    query, key, value = (torch.randn(2, 3, 5, 8, generator=draw).bfloat16() for _ in range(3))
    scores = query.float() @ key.float().transpose(-2, -1) / 8**0.5
    with Float32Attention():
        got = F.scaled_dot_product_attention(query, key, value, dropout_p=0.0)
    torch.testing.assert_close(got, (scores.softmax(-1) @ value.float()).bfloat16(), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("dtype, device, slow", [
    (torch.bfloat16, "cpu", True), (torch.float32, "cpu", False), (torch.bfloat16, "meta", False)
])  # fmt: skip
def test_only_bfloat16_on_the_cpu_is_slow(dtype, device, slow):
    context = gradient_attention(torch.empty(1, dtype=dtype, device=device))
    assert isinstance(context, Float32Attention) == slow


def test_a_pass_with_gradient_uses_it_and_others_do_not(monkeypatch, vit, images):
    asked = []
    noted = "avalanche_f2ocl.backbone.replaying.gradient_attention"
    monkeypatch.setattr(noted, lambda tokens: asked.append(1) or nullcontext())
    backbone = PromptableViT(vit, precision="bfloat16")
    tokens, prompts = backbone.tokens(images), torch.rand(1, 3, 128, requires_grad=True)
    backbone.encode_tokens(tokens, prompts.detach())
    with torch.no_grad():
        backbone.encode_tokens(tokens)
        backbone.encode_tokens(tokens, prompts)
    assert not asked
    backbone.encode_tokens(tokens, prompts)
    backbone.encode_layers(tokens, prompts)
    with prefix_tuning(vit.blocks, {0: torch.rand(1, 2, 3, 128, requires_grad=True)}):
        backbone.encode_tokens(tokens)
    assert len(asked) == 3


def test_gradients_are_those_of_plain_attention(vit, images, draw):
    weight, prompt = torch.randn(12, 128, generator=draw), torch.randn(1, 3, 128, generator=draw)
    gradients = []
    for precision in ("float32", "bfloat16"):
        backbone, own = PromptableViT(vit, precision=precision), prompt.clone().requires_grad_()
        (backbone.encode(images, own) * weight).sum().backward()
        gradients.append(own.grad.flatten())
    assert torch.cosine_similarity(*gradients, dim=0) > 0.99
