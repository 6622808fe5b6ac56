"""Passes over a mini-batch: how many, and what each sees."""

import re
from pathlib import Path

import pytest
import torch

from avalanche_f2ocl.baselines.coda_prompt import CODAPromptModel
from avalanche_f2ocl.baselines.dualprompt import DualPromptModel
from avalanche_f2ocl.baselines.l2p import L2PModel
from avalanche_f2ocl.baselines.mvp import MVPModel
from avalanche_f2ocl.baselines.single_prompt import SinglePromptModel
from tests.helpers import assert_same_state, learned

PAGE = Path(__file__).parents[2] / "docs" / "rivals.md"
TRAINED = dict(re.findall(r"^\| `(\w+)` \| (?:yes|no) \| `([^`]+)` \|$", PAGE.read_text(), re.MULTILINE))


@pytest.mark.parametrize("make", [L2PModel, SinglePromptModel])
def test_several_passes_are_as_many_steps(make, vit, images):
    three, one = make(vit, passes=3, augment="none"), make(vit, passes=1, augment="none")
    three.learn(images, [0, 1] * 6)
    for _ in range(3):
        one.learn(images, [0, 1] * 6)
    assert torch.equal(three.head.used("weight"), one.head.used("weight"))
    assert (three.batches, three.head.counts[0], one.batches) == (1, 6, 3)


def test_each_pass_is_augmented_anew_and_all_depends_on_the_seed(vit, images):
    seen = []

    class Watched(SinglePromptModel):
        def embed(self, view):
            seen.append(view.images)
            return super().embed(view)

    first, again, other = (Watched(vit, length=2, seed=seed) for seed in (0, 0, 1))
    for model in (first, again, other):
        model.learn(images[:4], [0, 1, 0, 1])
        model.learn(images[:4], [0, 1, 0, 1])
    passes = [torch.stack(seen[start : start + 6]) for start in (0, 6, 12)]
    assert all(not torch.equal(a, b) for i, a in enumerate(passes[0]) for b in passes[0][:i])
    assert torch.equal(passes[0], passes[1]) and not torch.equal(passes[0], passes[2])
    assert_same_state(learned(first), learned(again))


@pytest.mark.parametrize(
    "option, error, message",
    [
        (dict(passes=0), ValueError, "passes=0"),
        (dict(passes=1.5), TypeError, "passes=1.5"),
        (dict(augment="cutmix"), ValueError, "augment='cutmix': allowed are 'none', 'crop', 'autoaugment'"),
    ],
    ids=str,
)
def test_wrong_options(vit, option, error, message):
    with pytest.raises(error, match=message):
        L2PModel(vit, **option)


@pytest.mark.parametrize("make", [L2PModel, DualPromptModel, CODAPromptModel, MVPModel, SinglePromptModel])
def test_the_page_says_how_much_is_trained(small_vit, images, make):
    model = make(small_vit, passes=1, augment="none")
    model.learn(images[:7], list(range(7)))
    trained = sum(len(p) * p[0].numel() for p in model.prompts.parameters())
    # A cosine head has no use for its bias, which has no moments then.
    trained += sum(
        model.head.used(n)[0].numel() * 7 for n, p in model.head.named_parameters() if model.optimizer.state[p]
    )
    assert trained == eval(TRAINED[make.__name__.removesuffix("Model")], {"D": small_vit.embed_dim, "C": 7})
