import pytest
import torch
from torch.nn import functional as F

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.baselines.mvp import MVP, MVPModel
from tests.baselines.by_hand import PerClassAdam

BATCHES = ([5, 2, 5, 2], [2, 2, 5, 5], [9, 2, 9, 2])
PROMPTS = ("general", "expert", "keys")


def forward(vit, tokens, learned, counts):
    """One image at a time: the row of its E-prompt, that key's distance, and the embedding."""
    results = []
    for i in range(len(tokens)):
        x = tokens[i : i + 1]
        for block in vit.blocks[:-1]:
            x = block(x)
        distances = 1 - F.cosine_similarity(x[0, :1].detach(), learned["keys"], dim=1)
        row = int((distances * (counts + 1)).argmin())
        x, prompts = tokens[i : i + 1], [*learned["general"], *learned["expert"][row]]
        for index, block in enumerate(vit.blocks):
            x = block(torch.cat([x, prompts[index][None]], 1))[:, : tokens.shape[1]] if index < 5 else block(x)
        results.append((row, distances[row], vit.norm(x)[0, 0]))
    rows, distances, z = zip(*results, strict=True)
    return list(rows), torch.stack(distances), torch.stack(z)


def logits_of(z, rows, learned, classes):
    columns = [
        (z @ learned[c, "weight"] + learned[c, "bias"]) * 2 * learned[c, "mask"][rows].sigmoid() for c in classes
    ]
    return torch.stack(columns, dim=1)


def loss_by_hand(z, rows, distances, targets, learned, classes, counts):
    logits = logits_of(z.detach(), rows, learned, classes)
    each = F.cross_entropy(logits, targets, reduction="none")
    weights = [learned[c, "weight"] for c in classes]
    batch = torch.autograd.grad(each.mean(), weights, retain_graph=True)
    scales, factors = [], []
    for i, target in enumerate(targets.tolist()):
        own = torch.autograd.grad(each[i], weights, retain_graph=True)[target]
        factors.append(0.5 + 0.5 * (1 - F.cosine_similarity(own, batch[target], dim=0)) ** 2)
        scales.append(1 - F.cosine_similarity(weights[target].detach(), z[i].detach(), dim=0) + 0.5)
    scaled = logits_of(z / torch.stack(scales)[:, None], rows, learned, classes)
    focal = (torch.stack(factors) * F.cross_entropy(scaled, targets, reduction="none")).mean()
    near = torch.stack([(d / (counts[r] + 1)).exp() for r, d in zip(rows, distances, strict=True)]).mean()
    apart = [
        (1 - F.cosine_similarity(learned["keys"][r][None], learned["keys"], dim=1)) / (counts[r] + 1) for r in rows
    ]
    far = torch.stack(apart).exp().mean()
    return focal - torch.log(far / (near + far) + 1e-6)


def test_steps_written_out(vit, images):
    options = dict(lr=0.01, pool_size=3, g_length=1, e_length=2, passes=2, augment="none", seed=4)
    model = MVPModel(PromptableViT(vit), **options)
    learned = {name: getattr(model.prompts, name).detach().clone().requires_grad_() for name in PROMPTS}
    adam, counts, classes = PerClassAdam(0.01), torch.zeros(3), []
    for x, labels in zip(images.split(4), BATCHES, strict=True):
        for c in sorted(set(labels) - set(classes)):
            classes.append(c)
            learned[c, "weight"] = torch.zeros(128, requires_grad=True)
            learned[c, "bias"] = torch.zeros((), requires_grad=True)
            learned[c, "mask"] = (torch.zeros(3) - 1).requires_grad_()
        model.learn(x, labels)
        targets = torch.tensor([classes.index(c) for c in labels])
        for _ in range(2):
            rows, distances, z = forward(vit, model.backbone.tokens(x), learned, counts)
            loss_by_hand(z, rows, distances, targets, learned, classes, counts).backward()
            counts += torch.bincount(torch.tensor(rows), minlength=3)
            adam.step(learned)
    assert model.class_ids.tolist() == classes and torch.equal(model.prompts.counts, counts.long())
    for name in PROMPTS:
        torch.testing.assert_close(getattr(model.prompts, name), learned[name], rtol=1e-3, atol=1e-4)
    for name in ("weight", "bias", "mask"):
        expected = torch.stack([learned[c, name] for c in classes])
        torch.testing.assert_close(model.head.used(name), expected, rtol=1e-3, atol=1e-4)
    rows, _, z = forward(vit, model.backbone.tokens(images), learned, counts)
    torch.testing.assert_close(model(images), logits_of(z, rows, learned, classes), rtol=1e-3, atol=1e-3)


def test_the_published_settings(vit):
    model = MVP(backbone=vit, evaluator=None).model
    assert model.prompts.general.shape == (2, 5, 128) and model.prompts.expert.shape == (10, 3, 20, 128)
    config = model.config
    assert (config.lr, config.passes, config.augment, config.mask_logits) == (0.005, 3, "autoaugment", "none")
    assert (config.alpha, config.gamma, config.margin) == (0.5, 2, 0.5)


def test_counts_are_taken_back_with_the_minibatch(vit, images):
    model = MVPModel(vit, pool_size=3, passes=1, augment="none")
    model.learn(images[:4], [0, 1, 0, 1])
    before = model.prompts.counts.clone()
    model.head.counts.index_add_ = None  # the update after the step fails
    with pytest.raises(TypeError):
        model.learn(images[4:], [0, 1] * 4)
    assert before.sum() == 4 and torch.equal(model.prompts.counts, before)


@pytest.mark.parametrize(
    "option, error",
    [
        (dict(pool_size=0), ValueError),
        (dict(e_length=1.5), TypeError),
        (dict(alpha=2), ValueError),
        (dict(gamma=-1.0), ValueError),
        (dict(margin=0), ValueError),
    ],
    ids=str,
)
def test_options_out_of_range(vit, option, error):
    with pytest.raises(error, match=f"{next(iter(option))}="):
        MVP(backbone=vit, evaluator=None, **option)
