from copy import deepcopy

import pytest
import torch

from avalanche_f2ocl import F2OCLModel
from avalanche_f2ocl.rng import generator
from avalanche_f2ocl.state.prompts import elect
from tests.helpers import mini_batches


@pytest.mark.parametrize("keys", [1, 2, 5])
def test_prompts_of_the_nearest_keys_come_nearest_first(small_vit, images, labels, keys):
    model = F2OCLModel(small_vit, prompt_length=3, keys=keys, head_features="z")
    model.learn(images, labels)
    q = model.backbone.encode(images)
    similarity = torch.cosine_similarity(q.unsqueeze(1), model.keys.vectors().unsqueeze(0), dim=2)
    order = similarity.argsort(1, descending=True)[:, :keys]
    prompts = torch.stack([torch.cat([model.pool.prompts[r] for r in rows]) for rows in order.tolist()])
    expected = model.head.logits(model.backbone.encode(images, prompts.detach()))
    torch.testing.assert_close(model(images), expected)


def head_input(model, kind, images, prompts):
    """What a head gets, written out with hooks on the blocks."""
    if kind == "ensemble":
        none = torch.zeros(1, 0, 32)
        return torch.cat([head_input(model, "layers", images, p) for p in (prompts, none)], dim=1)
    z, q, seen = model.backbone.encode(images, prompts), model.backbone.encode(images), []
    if kind == "layers":
        blocks = model.backbone.vit.blocks
        hooks = [block.register_forward_hook(lambda *args: seen.append(args[2])) for block in blocks]
        model.backbone.encode(images, prompts)
        for hook in hooks:
            hook.remove()
        first_patch = 1 + prompts.shape[1]
        parts = [part for x in seen for part in (x[:, 0], x[:, first_patch:].mean(1))]
        return torch.cat([part / part.norm(dim=1, keepdim=True) for part in parts], dim=1)
    both = torch.cat([z / z.norm(dim=1, keepdim=True), q / q.norm(dim=1, keepdim=True)], dim=1)
    return {"z": z, "q": q, "zq": both}[kind]


@pytest.mark.parametrize("kind", ["z", "q", "zq", "layers", "ensemble"])
@pytest.mark.parametrize("head", ["ncm", "lda", "ridge"])
def test_the_head_learns_and_scores_its_features(small_vit, images, labels, head, kind):
    """Under the elected prompt in training, under the nearest key's in testing."""
    model = F2OCLModel(small_vit, prompt_length=3, head=head, head_features=kind, projection=0)
    alone = deepcopy(model.head)
    prototypes = {}
    for x, y in mini_batches(images, labels):
        model.learn(x, y)
        alone.add_rows(len(model.class_ids) - alone.num_rows)
        draw = generator(0, "election", model.batches - 1)
        rows = model.classes.rows(y)
        prompt = model.pool.prompts[elect(rows, len(model.class_ids), "sample", draw)].detach()
        alone.update(head_input(model, kind, x, prompt), rows)
        for z, c in zip(model.backbone.encode(x, prompt), y.tolist(), strict=True):
            prototypes.setdefault(c, []).append(z)
    torch.testing.assert_close(
        model.prototypes.means(), torch.stack([torch.stack(prototypes[c]).mean(0) for c in model.class_ids.tolist()])
    )
    q, keys = model.backbone.encode(images), model.keys.vectors()
    nearest = torch.cosine_similarity(q.unsqueeze(1), keys, dim=2).argmax(1)
    expected = alone.logits(head_input(model, kind, images, model.pool.prompts[nearest].detach()))
    torch.testing.assert_close(model(images), expected, rtol=1e-3, atol=1e-3)
    assert len(model.prototypes.used("counts")) == len(model.class_ids) == 3


def test_features_without_prompts_cost_one_forward_pass(small_vit, images, labels, monkeypatch):
    model = F2OCLModel(small_vit, prompt_length=3, head="lda", head_features="q")
    model.learn(images, labels)
    original, encoded = model.backbone._run, []
    monkeypatch.setattr(model.backbone, "_run", lambda *a, **k: (encoded.append(1), original(*a, **k))[1])
    model(images)
    assert len(encoded) == 1
