import pytest
import torch
from timm.models import VisionTransformer
from torch.nn import functional as F

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.baselines.single_prompt import SinglePrompt, SinglePromptModel
from avalanche_f2ocl.rng import generator
from tests.baselines.by_hand import PerClassAdam, under_prefixes

BATCHES = ([5, 2, 5, 2], [2, 2, 5, 5], [9, 2, 9, 2])


@pytest.mark.parametrize("position", ["none", "cls"])
def test_steps_written_out(vit, images, position):
    """Cosine logits over the mini-batch's classes, cross-entropy, Adam; a class's vector is under it from its birth."""
    options = dict(lr=0.01, length=3, scale=7.0, seed=4, passes=2, augment="none", prompt_position=position)
    model = SinglePromptModel(PromptableViT(vit, prompt_position=position), **options)
    learned, adam = {"prefix": model.prompts.prefix.detach().clone().requires_grad_()}, PerClassAdam(0.01)
    shift = vit.pos_embed[0, 0] if position == "cls" else 0
    for x, labels in zip(images.split(4), BATCHES, strict=True):
        classes = sorted(set(labels))
        for c in set(classes) - set(learned):
            draw = torch.rand(128, generator=generator(4, "head", c)) * 2 - 1
            learned[c] = (draw / 128**0.5).requires_grad_()
        model.learn(x, labels)
        for _ in range(2):
            z = under_prefixes(vit, model.backbone.tokens(x), learned["prefix"] + shift)
            cosine = torch.stack([F.cosine_similarity(z, learned[c].unsqueeze(0)) for c in classes], dim=1)
            F.cross_entropy(7 * cosine, torch.tensor([classes.index(c) for c in labels])).backward()
            adam.step(learned)
    torch.testing.assert_close(model.prompts.prefix, learned["prefix"], rtol=1e-3, atol=1e-4)
    weight = torch.stack([learned[c] for c in model.class_ids.tolist()])
    torch.testing.assert_close(model.head.used("weight"), weight, rtol=1e-3, atol=1e-4)
    assert not model.head.bias.any()
    z = under_prefixes(vit, model.backbone.tokens(images), learned["prefix"] + shift)
    cosine = F.cosine_similarity(z.unsqueeze(1), weight.unsqueeze(0), dim=2)
    torch.testing.assert_close(model(images), 7 * cosine, rtol=1e-3, atol=1e-3)


def test_the_published_settings(vit):
    model = SinglePrompt(backbone=vit, evaluator=None).model
    assert model.prompts.prefix.shape == (5, 2, 20, 128) and -1 <= model.prompts.prefix.min() < -0.9
    assert (model.passes, model.config.lr, model.head.scale) == (3, 0.005, 10)
    assert (model.config.mask_logits, model.config.augment, model.backbone.prompt_position) == (
        "batch", "autoaugment", "cls",
    )  # fmt: skip


@pytest.mark.parametrize(
    "options", [{"length": 0}, {"scale": -1.0}, {"prompt_init": "ones"}, {"lr": 0.0}, {"head_init": "zeros"}], ids=str
)
def test_options_out_of_range(vit, options):
    with pytest.raises(ValueError, match=f"{next(iter(options))}="):
        SinglePrompt(backbone=vit, evaluator=None, **options)


def test_a_backbone_that_is_too_shallow_or_without_position_is_refused():
    kind = dict(img_size=16, patch_size=8, embed_dim=12, num_heads=2, num_classes=0)
    with pytest.raises(ValueError, match="4 blocks: SinglePrompt needs at least 5"):
        SinglePrompt(backbone=VisionTransformer(depth=4, **kind), evaluator=None)
    vit = VisionTransformer(depth=5, no_embed_class=True, **kind)
    with pytest.raises(ValueError, match="prompt_position='cls': this backbone's class token has no position"):
        SinglePrompt(backbone=vit, evaluator=None)
    assert SinglePrompt(backbone=vit, evaluator=None, prompt_position="none").model.head.scale == 10
