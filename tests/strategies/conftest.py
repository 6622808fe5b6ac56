import pytest

from avalanche_f2ocl import F2OCLStrategy
from tests.helpers import train_online


@pytest.fixture(scope="session")
def vit(small_vit):
    return small_vit


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.safetensors"


@pytest.fixture
def saved(vit, digits, path):
    strategy = F2OCLStrategy(backbone=vit, evaluator=None, prompt_length=3)
    train_online(strategy, digits.train_stream[:1])
    strategy.save(path)
    return path
