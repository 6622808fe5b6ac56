import torch

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.models.batch import TrainingBatch


def test_rows_and_classes(vit, images):
    rows = torch.tensor([4, 1, 4, 4, 1, 9])
    batch = TrainingBatch(images[:6], rows, PromptableViT(vit), lambda batch: batch.q)
    assert batch.class_rows.tolist() == [1, 4, 9]
    assert torch.equal(batch.class_rows[batch.local], rows)


def test_q_is_the_unprompted_embedding_without_gradient(vit, images):
    backbone = PromptableViT(vit)
    batch = TrainingBatch(images, torch.zeros(12, dtype=torch.int64), backbone, lambda batch: batch.q)
    assert torch.equal(batch.q, backbone.encode(images)) and not batch.q.requires_grad
    assert batch.q is batch.q


def test_the_models_pass_is_made_once(vit, images):
    passes = []
    batch = TrainingBatch(images, torch.zeros(12, dtype=torch.int64), PromptableViT(vit), passes.append)
    assert batch.encoded is None and batch.encoded is None and passes == [batch]
