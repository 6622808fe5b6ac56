import torch

from avalanche_f2ocl import F2OCLModel, load_model
from avalanche_f2ocl.models.random_prompt import RandomPromptModel


def test_learning_leaves_the_prompts_as_they_were_born(vit, images, labels, tmp_path):
    model, fresh = (make(vit, prompt_length=3, passes=2) for make in (RandomPromptModel, F2OCLModel))
    model.learn(images, labels)
    fresh.add_classes(model.class_ids)
    assert torch.equal(model.pool.used("prompts"), fresh.pool.used("prompts")) and not model.optimizer.state
    assert model.head.used("counts").tolist() == [3, 6, 3] and model.batches == 1
    model.save(tmp_path / "a.safetensors")
    again = load_model(tmp_path / "a.safetensors", device="cpu")
    assert type(again) is RandomPromptModel and torch.equal(again(images), model(images))
