"""Shared fixtures: the bundled ViT and small parts of the digits."""

import pytest
import torch
from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import F2OCLModel, f2ocl_metrics
from avalanche_f2ocl.backbone.weights import load_vit
from avalanche_f2ocl.testing import running


def pytest_collection_modifyitems(items):
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device, there is none"))


@pytest.fixture(autouse=True)
def same_draws():
    """Each test draws the same random numbers, alone or after others."""
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def trained_vit():
    """The bundled ViT, for tests that ask for accuracy."""
    return load_vit("micro_vit")


@pytest.fixture(scope="session")
def vit(trained_vit):
    """Folders whose tests only compare states and answers have the small one under this name: a tenth of the time."""
    return trained_vit


@pytest.fixture(scope="session")
def small_vit():
    """The smallest that every strategy takes, for tests that compare states and answers of all of them."""
    return running.small_vit()


@pytest.fixture(scope="session")
def digits():
    """Five groups of two classes, 20 training and 10 test images a class."""
    return running.few_digits()


@pytest.fixture
def images():
    """12 images of noise, (12, 3, 32, 32) uint8."""
    return torch.randint(0, 256, (12, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def labels():
    return torch.tensor([4, 4, -3, 900, 4, -3, -3, 900, 4, 4, 900, 4])


@pytest.fixture
def model(vit):
    return F2OCLModel(vit, prompt_length=4)


@pytest.fixture
def evaluator():
    return EvaluationPlugin(*f2ocl_metrics())


@pytest.fixture
def draw():
    """A generator for reproducible random tensors."""
    return torch.Generator().manual_seed(0)
