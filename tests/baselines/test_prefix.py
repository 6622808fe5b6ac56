import pytest
import torch
from timm.layers import Attention

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.baselines.prefix import prefix_tuning


def naive(attention, x, keys, values):
    """Prefix attention one head and one query at a time; keys and values (B, P, D)."""
    batch, tokens, dim = x.shape
    size = dim // attention.num_heads
    out = torch.zeros_like(x)
    weight, bias = attention.qkv.weight, attention.qkv.bias
    q, k, v = (x @ weight[i * dim : (i + 1) * dim].T + bias[i * dim : (i + 1) * dim] for i in range(3))
    k, v = torch.cat([keys, k], 1), torch.cat([values, v], 1)
    for b in range(batch):
        for head in range(attention.num_heads):
            part = slice(head * size, (head + 1) * size)
            for t in range(tokens):
                scores = k[b, :, part] @ attention.q_norm(q[b, t, part]) / size**0.5
                out[b, t, part] = torch.softmax(scores, 0) @ v[b, :, part]
    return out @ attention.proj.weight.T + attention.proj.bias


@pytest.mark.parametrize("shared", [True, False], ids=["one prefix", "a prefix a sample"])
@pytest.mark.parametrize("fused", [True, False])
def test_a_naive_loop_gives_the_same(draw, shared, fused):
    torch.manual_seed(0)
    block = torch.nn.Module()
    block.attn = Attention(8, num_heads=2, qkv_bias=True)
    block.attn.fused_attn = fused
    x = torch.randn(3, 4, 8, generator=draw)
    prefix = torch.randn(1 if shared else 3, 2, 5, 8, generator=draw)
    keys, values = prefix.expand(3, -1, -1, -1).unbind(1)
    with prefix_tuning([block], {0: prefix}):
        ours = block.attn(x)
    torch.testing.assert_close(ours, naive(block.attn, x, keys, values), rtol=1e-4, atol=1e-5)


def test_only_the_named_blocks_and_only_while_it_lasts(vit, images):
    backbone = PromptableViT(vit)
    tokens = backbone.tokens(images)
    plain = backbone.encode_tokens(tokens)
    prefix = torch.ones(1, 2, 3, backbone.embed_dim)
    calls = {}
    handles = [
        block.attn.qkv.register_forward_hook(lambda m, a, out, i=i: calls.__setitem__(i, out.shape[1]))
        for i, block in enumerate(vit.blocks)
    ]
    with prefix_tuning(vit.blocks, {1: prefix, 3: prefix}):
        prefixed = backbone.encode_tokens(tokens)
    for handle in handles:
        handle.remove()
    width = tokens.shape[1]
    assert [calls[i] for i in range(6)] == [width, width + 3, width, width + 3, width, width]
    assert prefixed.shape == plain.shape and not torch.allclose(prefixed, plain)
    assert torch.equal(backbone.encode_tokens(tokens), plain)


def test_nothing_stays_behind_after_an_error(vit, images):
    backbone = PromptableViT(vit)
    tokens = backbone.tokens(images)
    plain = backbone.encode_tokens(tokens)
    with pytest.raises(RuntimeError), prefix_tuning(vit.blocks, {0: torch.ones(1, 2, 3, backbone.embed_dim)}):
        raise RuntimeError
    assert torch.equal(backbone.encode_tokens(tokens), plain)


def test_gradients_reach_the_prefix(vit, images):
    backbone = PromptableViT(vit)
    prefix = torch.ones(1, 2, 3, backbone.embed_dim, requires_grad=True)
    with prefix_tuning(vit.blocks, {2: prefix}):
        backbone.encode_tokens(backbone.tokens(images)).sum().backward()
    assert (prefix.grad.flatten(2).norm(dim=2) > 0).all()
