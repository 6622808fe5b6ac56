import pytest
import torch

from avalanche_f2ocl import F2OCLModel
from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.models.f2ocl_batch import F2OCLBatch
from avalanche_f2ocl.models.prediction import Unprompted


def test_first_samples_and_q_from_the_pass_that_gives_layers(vit, images):
    rows, q = torch.tensor([4, 1, 4, 4, 1, 9]), torch.rand(6, 128)
    batch = F2OCLBatch(images[:6], rows, PromptableViT(vit), lambda batch: Unprompted(q))
    assert batch.first.tolist() == [0, 1, 0, 0, 1, 5]
    assert batch.q is q and batch.prompt_rows is None


@pytest.mark.parametrize("election, rows", [("sample", {0}), ("majority", {0}), ("seen", {0, 1, 2})])
def test_which_prompts_an_election_moves(small_vit, images, election, rows):
    """Three classes seen, then mini-batches of the first alone."""
    model = F2OCLModel(small_vit, prompt_length=3, prompt_election=election)
    model.learn(images[:6], [0, 1, 2, 0, 1, 2])
    before = model.pool.used("prompts").detach().clone()
    for _ in range(12):
        model.learn(images[:2], [0, 0])
    moved = (model.pool.used("prompts") != before).flatten(1).any(1).nonzero().flatten().tolist()
    assert set(moved) == rows
