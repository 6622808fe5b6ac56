import torch

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.models.batch import OnlineBatch


def test_rows_classes_and_first_samples(vit, images):
    rows = torch.tensor([4, 1, 4, 4, 1, 9])
    batch = OnlineBatch(PromptableViT(vit), images[:6], rows, torch.device("cpu"))
    assert batch.class_rows.tolist() == [1, 4, 9]
    assert torch.equal(batch.class_rows[batch.local], rows)
    assert batch.first.tolist() == [0, 1, 0, 0, 1, 5]


def test_q_is_the_unprompted_embedding_without_gradient(vit, images):
    backbone = PromptableViT(vit)
    batch = OnlineBatch(backbone, images, torch.zeros(12, dtype=torch.int64), torch.device("cpu"))
    assert torch.equal(batch.q, backbone.encode(images)) and not batch.q.requires_grad
    assert batch.q is batch.q
