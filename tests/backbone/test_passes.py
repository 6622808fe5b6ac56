import pytest
import torch
from torch.nn import functional as F

from avalanche_f2ocl.backbone.passes import insert_prompts, last_outputs, layer_outputs, read_out


@pytest.fixture
def tokens(vit, images):
    with torch.no_grad():
        return vit._pos_embed(vit.patch_embed(images.float() / 255))


def test_prompts_stand_between_class_token_and_patches(vit, tokens, draw):
    prompts = torch.randn(1, 2, vit.embed_dim, generator=draw)
    inserted = insert_prompts(vit, tokens, prompts)
    for image, row in zip(tokens, inserted, strict=True):
        torch.testing.assert_close(row, torch.stack([image[0], *prompts[0], *image[1:]]))
    positioned = insert_prompts(vit, tokens, prompts, "cls")
    torch.testing.assert_close(positioned[0, 2] - inserted[0, 2], vit.pos_embed[0, 0], rtol=0, atol=1e-5)


@torch.no_grad()
def test_layers_are_what_hooks_on_the_blocks_see(vit, tokens, draw):
    x = insert_prompts(vit, tokens, torch.randn(1, 2, vit.embed_dim, generator=draw))
    seen = []
    hooks = [block.register_forward_hook(lambda _, __, output: seen.append(output)) for block in vit.blocks]
    last, layers = layer_outputs(vit, x, 2, (0, len(vit.blocks) - 1))
    for hook in hooks:
        hook.remove()
    assert torch.equal(last, seen[-1]) and torch.equal(last, last_outputs(vit, x, 2))
    for index, outputs in enumerate((seen[0], seen[-1])):
        torch.testing.assert_close(layers[:, index, 0], outputs[:, 0])
        torch.testing.assert_close(layers[:, index, 1], outputs[:, 3:].mean(1), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_readouts_by_hand(vit, tokens):
    outputs = last_outputs(vit, tokens)
    normed = F.layer_norm(outputs, outputs.shape[-1:], vit.norm.weight, vit.norm.bias, vit.norm.eps)
    for readout, length, expected in (
        ("cls", 3, normed[:, 0]),
        ("prompt", 0, normed[:, 0]),
        ("prompt", 3, normed[:, 1:4].mean(1)),
        ("patch", 3, normed[:, 4:].mean(1)),
        ("distilled", 3, normed[:, :2].mean(1)),
    ):
        torch.testing.assert_close(read_out(vit, outputs, length, readout), expected)
