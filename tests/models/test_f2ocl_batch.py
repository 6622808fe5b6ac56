import torch

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.models.f2ocl_batch import F2OCLBatch
from avalanche_f2ocl.models.prediction import Unprompted


def test_first_samples_and_q_from_the_pass_that_gives_layers(vit, images):
    rows, q = torch.tensor([4, 1, 4, 4, 1, 9]), torch.rand(6, 128)
    batch = F2OCLBatch(images[:6], rows, PromptableViT(vit), lambda batch: Unprompted(q))
    assert batch.first.tolist() == [0, 1, 0, 0, 1, 5]
    assert batch.q is q and batch.prompt_rows is None
