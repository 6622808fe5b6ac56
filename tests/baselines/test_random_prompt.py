import torch

from avalanche_f2ocl import F2OCLModel
from avalanche_f2ocl.baselines import RandomPrompt
from tests.helpers import as_tensors, train_online


def test_prompts_keep_their_initial_values_and_prototypes_are_made_under_them(vit, digits):
    strategy = RandomPrompt(backbone=vit, prompt_length=3, head_features="z", evaluator=None)
    train_online(strategy, digits.train_stream[:2])
    fresh = F2OCLModel(vit, prompt_length=3)
    fresh.add_classes(strategy.model.class_ids)
    assert torch.equal(strategy.model.pool.used("prompts"), fresh.pool.used("prompts"))
    assert strategy.model.head.used("counts").tolist() == [20] * 4
    images = as_tensors(digits.test_stream[0])[0]
    assert not torch.allclose(strategy.model.head.means(), strategy.model.keys.vectors(), atol=0.1)
    assert strategy.model.predict(images).shape == (20,)
