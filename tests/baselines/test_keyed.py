"""Steps of L2P and DualPrompt against torch.optim.Adam on the equation written out."""

import pytest
import torch
from timm.models import VisionTransformer
from torch.nn import functional as F

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.baselines.dualprompt import DualPromptModel
from avalanche_f2ocl.baselines.l2p import L2PModel
from avalanche_f2ocl.models.batch import ImageView
from tests.baselines.by_hand import under_prefixes

BATCHES = [[5, 2, 5, 2], [2, 5, 2, 2], [5, 5, 5, 2]]


def make_l2p(vit, position="none", **options):
    backbone = PromptableViT(vit, readout="prompt", prompt_position=position)
    return L2PModel(backbone, lr=0.01, pool_size=6, prompt_length=3, top_k=2, pull=0.5, **options)


def make_dualprompt(vit, **options):
    return DualPromptModel(PromptableViT(vit), lr=0.01, pool_size=4, g_length=2, e_length=3, pull=1.0, **options)


def make_l2p_with_positions(vit, **options):
    return make_l2p(vit, position="cls", **options)


MODELS = {"l2p": make_l2p, "l2p-cls": make_l2p_with_positions, "dualprompt": make_dualprompt}


@pytest.fixture(params=["l2p", "dualprompt"])
def make(request, vit):
    return lambda **options: MODELS[request.param](vit, **options)


def nearest(q, keys, count):
    return F.cosine_similarity(q.unsqueeze(1), keys.unsqueeze(0), dim=2).topk(count, dim=1)


def l2p_by_hand(backbone, images, state, pull=0.5):
    tokens = backbone.tokens(images)
    near = nearest(backbone.encode_tokens(tokens), state["prompts.keys"], 2)
    chosen = torch.stack([torch.cat([state["prompts.prompts"][r] for r in rows]) for rows in near.indices.tolist()])
    # Prompts between the class token and the patches; read out as the mean of their outputs.
    position = backbone.vit.pos_embed[:, :1] if backbone.prompt_position == "cls" else 0
    x = backbone.vit.norm(backbone.vit.blocks(torch.cat([tokens[:, :1], chosen + position, tokens[:, 1:]], 1)))
    return x[:, 1:7].mean(1), pull * (1 - near.values).sum(1).mean()


def dualprompt_by_hand(backbone, images, state, pull=1.0):
    tokens = backbone.tokens(images)
    near = nearest(backbone.encode_tokens(tokens), state["prompts.expert.keys"], 1)
    outputs = []
    for i, (row,) in enumerate(near.indices.tolist()):
        general, expert = state["prompts.general"], state["prompts.expert.prompts"][row]
        outputs.append(under_prefixes(backbone.vit, tokens[i : i + 1], [*general, *expert]))
    return torch.cat(outputs), pull * (1 - near.values).sum(1).mean()


@pytest.mark.parametrize("mask", ["none", "batch"])
@pytest.mark.parametrize("name", MODELS)
def test_steps_are_adams_on_cross_entropy_and_key_loss(vit, name, images, mask):
    model = MODELS[name](vit, mask_logits=mask)
    by_hand = l2p_by_hand if isinstance(model, L2PModel) else dualprompt_by_hand
    state = {
        name: p.detach().clone().requires_grad_() for name, p in model.named_parameters() if name.startswith("prompts")
    }
    state |= {"weight": torch.zeros(2, 128, requires_grad=True), "bias": torch.zeros(2, requires_grad=True)}
    adam = torch.optim.Adam(state.values(), lr=0.01)
    for start, labels in enumerate(BATCHES):
        x, rows = images[4 * start : 4 * start + 4], torch.tensor([[2, 5].index(label) for label in labels])
        model.learn(x, labels)
        z, key_loss = by_hand(model.backbone, x, state)
        adam.zero_grad()
        (F.cross_entropy(z @ state["weight"].T + state["bias"], rows) + key_loss).backward()
        adam.step()
    for name, value in state.items():
        ours = model.head.used(name) if name in ("weight", "bias") else model.get_parameter(name)
        torch.testing.assert_close(ours, value, rtol=1e-3, atol=1e-4, msg=lambda m, name=name: f"{name}: {m}")


def test_masking_spares_the_classes_that_are_absent(make, images):
    for mask, spared in (("none", False), ("batch", True)):
        model = make(mask_logits=mask)
        model.learn(images[:4], [0, 1, 0, 1])
        model.learn(images[4:8], [2, 3, 2, 3])
        before = model.head.used("weight").detach().clone()
        model.learn(images[8:], [2, 3, 2, 3])
        same = (model.head.used("weight") == before).all(1).tolist()
        assert same == [spared, spared, False, False]


def test_a_class_that_is_born_later_starts_its_own_adam(make, images):
    model = make()
    model.learn(images[:4], [0, 1, 0, 1])
    model.learn(images[4:8], [2, 1, 0, 1])
    steps = model.optimizer.state[model.head.weight]["step"]
    assert steps[:3].tolist() == [2, 2, 1]


def test_ncm_is_the_mean_of_embeddings_after_each_step(make, images):
    model = make(classifier="ncm")
    labels, sums = [0, 1, 0, 1], torch.zeros(2, 128)
    for start in (0, 4):
        x = images[start : start + 4]
        model.learn(x, labels)
        with torch.no_grad():
            z = model.embed(ImageView(x, model.backbone)).z
        sums += torch.stack([z[[0, 2]].sum(0), z[[1, 3]].sum(0)])
    torch.testing.assert_close(model.ncm.means(), sums / 4)
    z = model.embed(ImageView(images[8:], model.backbone)).z
    torch.testing.assert_close(
        model(images[8:]), F.cosine_similarity(z.unsqueeze(1), (sums / 4).unsqueeze(0), dim=2).detach()
    )


def test_the_backbone_stays_as_it_was(make, images, vit):
    before = {name: p.clone() for name, p in vit.named_parameters()}
    model = make()
    model.learn(images[:4], [0, 1, 0, 1])
    assert all(torch.equal(p, before[name]) for name, p in vit.named_parameters())
    assert not any(p.requires_grad for p in vit.parameters())


@pytest.mark.parametrize(
    "kind",
    [dict(reg_tokens=2), dict(qk_norm=True), dict(init_values=1e-2), dict(no_embed_class=True), dict(fc_norm=True)],
    ids=str,
)
def test_other_vits(kind, images):
    vit = VisionTransformer(img_size=32, patch_size=8, embed_dim=16, depth=5, num_heads=2, num_classes=0, **kind)
    for make in (make_l2p, make_dualprompt):
        model = make(vit)
        model.learn(images, [0, 1] * 6)
        assert model(images).shape == (12, 2) and model(images).isfinite().all()


@pytest.mark.parametrize(
    "option, message",
    [
        (dict(mask_logits="task"), "mask_logits='task': allowed are 'none', 'batch'"),
        (dict(classifier="knn"), "classifier='knn': allowed are 'linear', 'ncm'"),
    ],
)
def test_wrong_options(make, option, message):
    with pytest.raises(ValueError, match=message):
        make(**option)
