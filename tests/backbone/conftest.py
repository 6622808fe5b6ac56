import pytest

from avalanche_f2ocl.backbone.cuda_graphs import CapturedCalls
from tests.backbone.cuda_stand_in import stand_in


@pytest.fixture
def cuda(monkeypatch):
    return stand_in(monkeypatch)


@pytest.fixture
def calls(cuda):
    return CapturedCalls(device_type="cpu")
