import pytest
import torch
from timm.models import VisionTransformer
from torch.nn import functional as F

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.baselines.prefix import prefix_tuning
from avalanche_f2ocl.baselines.shared_prompt import SharedPrompt, SharedPromptModel
from avalanche_f2ocl.rng import generator

BATCHES = ([5, 2, 5, 2], [2, 2, 5, 5], [9, 2, 9, 2])


def test_steps_written_out(vit, images):
    """Cosine logits over the mini-batch's classes, cross-entropy, Adam; a class's vector is under it from its birth."""
    model = SharedPromptModel(PromptableViT(vit), lr=0.01, length=3, scale=7.0, seed=4)
    prefix = model.prefix.detach().clone().requires_grad_()
    shared, own, vectors = torch.optim.Adam([prefix], lr=0.01), {}, {}
    for x, labels in zip(images.split(4), BATCHES, strict=True):
        for c in sorted(set(labels) - set(vectors)):
            vectors[c] = (torch.randn(128, generator=generator(4, "head", c)) * 0.02).requires_grad_()
            own[c] = torch.optim.Adam([vectors[c]], lr=0.01)
        model.learn(x, labels)
        with prefix_tuning(vit.blocks, {block: prefix[block].unsqueeze(0) for block in range(5)}):
            z = model.backbone.encode(x)
        classes = sorted(set(labels))
        cosine = torch.stack([F.cosine_similarity(z, vectors[c].unsqueeze(0)) for c in classes], dim=1)
        loss = F.cross_entropy(7 * cosine, torch.tensor([classes.index(c) for c in labels]))
        for optimizer in (shared, *(own[c] for c in classes)):
            optimizer.zero_grad()
        loss.backward()
        for optimizer in (shared, *(own[c] for c in classes)):
            optimizer.step()
    torch.testing.assert_close(model.prefix, prefix, rtol=1e-3, atol=1e-4)
    weight = torch.stack([vectors[c] for c in model.class_ids.tolist()])
    torch.testing.assert_close(model.head.used("weight"), weight, rtol=1e-3, atol=1e-4)
    assert not model.head.bias.any()


@pytest.mark.parametrize("options", [{"length": 0}, {"scale": -1.0}, {"prompt_init": "ones"}, {"lr": 0.0}], ids=str)
def test_options_out_of_range(vit, options):
    with pytest.raises(ValueError, match=f"{next(iter(options))}="):
        SharedPrompt(backbone=vit, evaluator=None, **options)


def test_a_shallow_backbone_is_refused():
    vit = VisionTransformer(img_size=16, patch_size=8, embed_dim=12, depth=4, num_heads=2, num_classes=0)
    with pytest.raises(ValueError, match="4 blocks: SharedPrompt needs at least 5"):
        SharedPrompt(backbone=vit, evaluator=None)
