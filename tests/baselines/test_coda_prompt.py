import pytest
import torch
from torch.nn import functional as F

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.baselines.coda_prompt import (
    CODAPrompt,
    CODAPromptModel,
    attended_similarity,
    orthogonality_penalty,
    orthonormal,
)
from tests.baselines.by_hand import PerClassAdam, under_prefixes

BATCHES = ([5, 2, 5, 2], [2, 2, 5, 5], [9, 2, 9, 2])


def prefixes_by_hand(q, learned, i):
    """Of image i, block by block, component by component."""
    blocks = []
    for block in range(5):
        total = 0
        for m in range(len(learned["keys"][block])):
            attended = q[i] * learned["attention"][block, m]
            weight = F.cosine_similarity(attended, learned["keys"][block, m], dim=0)
            total = total + weight * learned["prefixes"][block, m]
        blocks.append(total)
    return blocks


def penalty_by_hand(learned):
    total = 0
    for tensor in (learned["prefixes"], learned["keys"], learned["attention"]):
        for block in tensor:
            rows = block.reshape(len(block), -1)
            for i, one in enumerate(rows):
                for j, other in enumerate(rows):
                    total = total + (one @ other - int(i == j)) ** 2 / len(rows) ** 2
    return total


def test_steps_written_out(vit, images):
    """Weighted components, cross-entropy over the mini-batch's classes, the penalty, Adam."""
    model = CODAPromptModel(PromptableViT(vit), lr=0.01, pool_size=3, length=2, ortho=0.5, seed=4)
    names = ("prefixes", "keys", "attention")
    with torch.no_grad():  # away from orthonormal, where the penalty's gradient is rounding alone
        for parameter in model.prompts.parameters():
            parameter.mul_(1.5)
    learned = {name: getattr(model.prompts, name).detach().clone().requires_grad_() for name in names}
    adam = PerClassAdam(0.01)
    for x, labels in zip(images.split(4), BATCHES, strict=True):
        classes = sorted(set(labels))
        for c in classes:
            learned.setdefault(c, torch.zeros(128, requires_grad=True))
            learned.setdefault((c, "bias"), torch.zeros(1, requires_grad=True))
        model.learn(x, labels)
        tokens = model.backbone.tokens(x)
        q = model.backbone.encode_tokens(tokens)
        each = [prefixes_by_hand(q, learned, i) for i in range(4)]
        z = torch.cat([under_prefixes(vit, tokens[i : i + 1], each[i]) for i in range(4)])
        logits = torch.stack([z @ learned[c] + learned[c, "bias"] for c in classes], dim=1)
        targets = torch.tensor([classes.index(c) for c in labels])
        (F.cross_entropy(logits, targets) + 0.5 * penalty_by_hand(learned)).backward()
        adam.step(learned)
    for name in names:
        torch.testing.assert_close(getattr(model.prompts, name), learned[name], rtol=1e-3, atol=1e-4)
    weight = torch.stack([learned[c] for c in model.class_ids.tolist()])
    torch.testing.assert_close(model.head.used("weight"), weight, rtol=1e-3, atol=1e-4)


def test_similarity_and_penalty_against_loops(draw):
    q, attention, keys = (torch.randn(*shape, generator=draw) for shape in ((3, 6), (2, 4, 6), (2, 4, 6)))
    ours = attended_similarity(q, attention, keys)
    for b in range(3):
        for n in range(2):
            for m in range(4):
                expected = F.cosine_similarity(q[b] * attention[n, m], keys[n, m], dim=0)
                torch.testing.assert_close(ours[b, n, m], expected)
    # Rows of length 2 at right angles: 2 * 2 - 1 = 3 off twice, of four entries; two such blocks.
    assert orthogonality_penalty(2 * torch.eye(2).repeat(2, 1, 1)).item() == 2 * (9 + 9) / 4


@pytest.mark.parametrize("rows", [4, 8, 12])
def test_the_start_is_orthonormal(draw, rows):
    start = orthonormal(2, rows, 8, draw)
    assert start.shape == (2, rows, 8) and not torch.equal(start[0], start[1])
    gram = start @ start.transpose(1, 2) if rows <= 8 else start.transpose(1, 2) @ start
    torch.testing.assert_close(gram, torch.eye(len(gram[0])).expand(2, -1, -1))


def test_the_published_settings(vit):
    model = CODAPrompt(backbone=vit, evaluator=None).model
    assert model.prompts.prefixes.shape == (5, 100, 2, 4, 128) and model.prompts.keys.shape == (5, 100, 128)
    assert (model.config.ortho, model.config.lr, model.config.mask_logits) == (0.1, 0.001, "batch")
    assert model.prompts.penalty() < 1e-8


@pytest.mark.parametrize(
    "option, error",
    [(dict(pool_size=0), ValueError), (dict(length=1.5), TypeError), (dict(ortho=-1), ValueError)],
    ids=str,
)
def test_options_out_of_range(vit, option, error):
    with pytest.raises(error, match=f"{next(iter(option))}="):
        CODAPrompt(backbone=vit, evaluator=None, **option)
