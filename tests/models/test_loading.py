import pytest
import torch

from avalanche_f2ocl.baselines import L2P
from avalanche_f2ocl.models.loading import MODELS, load_model
from tests.helpers import train_online
from tests.models.test_saving import MODELS as MADE


@pytest.mark.parametrize("name", MADE)
def test_a_file_gives_the_class_it_was_saved_from(name, vit, images, tmp_path):
    model = MADE[name](vit)
    model.learn(images, [3, 5, 7] * 4)
    model.save(tmp_path / "a.safetensors")
    other = load_model(tmp_path / "a.safetensors", device="cpu")
    assert type(other) is type(model) is MODELS[model.saved_as] and torch.equal(other(images), model(images))


def test_what_needs_its_strategy(vit, digits, tmp_path):
    strategy = train_online(L2P(backbone=vit, evaluator=None), digits.train_stream[:1])
    strategy.save(tmp_path / "a.safetensors")
    kinds = "F2OCLStrategy, FrozenBackbone, RandomPrompt, ViTNCM"
    with pytest.raises(ValueError, match=f"is of L2P: only {kinds} have models to read; use L2P.load"):
        load_model(tmp_path / "a.safetensors")
