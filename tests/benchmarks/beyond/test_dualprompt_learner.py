import pytest
import torch

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.baselines.dualprompt import DualPromptModel
from avalanche_f2ocl.models.batch import ImageView
from benchmarks.beyond.dualprompt_account import OURS, ROWS, load_groups
from benchmarks.beyond.dualprompt_learner import Learner, Views, learn
from benchmarks.runs.runner import parse_args
from tests.benchmarks.beyond.test_dualprompt_account import ARGS


@pytest.fixture(scope="module")
def groups():
    return load_groups(parse_args([*ARGS, "--table", "t", "--method", "dualprompt-mask"]))


def views_of(vit, groups):
    return Views(lambda normalise: PromptableViT(vit, normalise=normalise), groups)


def test_the_first_row_is_dualprompt_as_it_is_here(vit, groups):
    learner = learn(views_of(vit, groups), OURS, seed=3)
    model = DualPromptModel(vit, seed=3, mask_logits="batch")
    for group in groups:
        for images, labels in zip(group.images.split(10), group.labels.split(10), strict=True):
            model.learn(images, labels)
    ids = model.class_ids
    torch.testing.assert_close(learner.weight[ids], model.head.used("weight"), rtol=1e-3, atol=1e-4)
    for ours, theirs in zip(model.prompts.parameters(), learner.model.prompts.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


def test_every_row_changes_what_is_learned(vit, groups):
    orders = [group.labels.argsort() for group in groups]  # so that mini-batches lack classes of their group
    groups = [g._replace(images=g.images[o], labels=g.labels[o]) for g, o in zip(groups, orders, strict=True)]
    views, seen = views_of(vit, groups), []
    for name, choices in ROWS.items():
        if choices.e_length == 20:  # more than one change at once need not be told apart
            learner = learn(views, choices, seed=3)
            seen.append(
                (name, torch.cat([p.detach().flatten() for p in (learner.weight, learner.model.prompts.general)]))
            )
    for i, (name, one) in enumerate(seen):
        for other_name, other in seen[:i]:
            assert not torch.equal(one, other), (name, other_name)


def test_one_adam_moves_absent_classes(vit, groups):
    moved = []
    for dense in (False, True):
        learner = Learner(PromptableViT(vit), 10, OURS._replace(dense=dense), 0)
        batch = views_of(vit, groups).batches(0, "backbone", True)[0]
        learner.step(*batch, batch[1])
        before = learner.weight.detach().clone()
        absent = int(batch[1][0])
        rest = batch[1][batch[1] != absent]
        view = ImageView(batch[0].images[batch[1] != absent], learner.model.backbone)
        learner.step(view, rest, rest)
        moved.append(not torch.equal(learner.weight[absent], before[absent]))
    assert moved == [False, True]
