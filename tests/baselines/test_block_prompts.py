import pytest
import torch

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.baselines.block_prompts import prompt_tuning


@pytest.mark.parametrize("of_all", [True, False], ids=["one prompt", "a prompt a sample"])
def test_only_the_named_blocks_see_the_tokens_and_only_while_it_lasts(vit, images, draw, of_all):
    backbone = PromptableViT(vit)
    tokens = backbone.tokens(images)
    plain, count = backbone.encode_tokens(tokens), tokens.shape[1]
    prompts = {i: torch.randn(1 if of_all else 12, 3 - i % 2, 128, generator=draw) for i in (0, 3)}
    with pytest.raises(OSError), prompt_tuning(vit.blocks, prompts):
        ours = backbone.encode_tokens(tokens)
        raise OSError
    assert torch.equal(backbone.encode_tokens(tokens), plain)
    x = tokens
    for i, block in enumerate(vit.blocks):
        x = block(torch.cat([x, prompts[i].expand(12, -1, -1)], 1))[:, :count] if i in prompts else block(x)
    torch.testing.assert_close(ours, vit.norm(x)[:, 0])
    assert not torch.allclose(ours, plain)
