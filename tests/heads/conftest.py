import pytest
import torch
from sklearn.datasets import load_digits


@pytest.fixture(scope="session")
def data():
    """Real digits: pixels (1797, 64) float32 in [0, 1], labels."""
    images, labels = load_digits(return_X_y=True)
    return torch.from_numpy(images / 16).float(), torch.from_numpy(labels).long()
