import pytest

from avalanche_f2ocl import CheckpointPlugin, ViTNCM
from tests.helpers import train_online


@pytest.fixture
def path(tmp_path):
    return tmp_path / "learned.safetensors"


def test_the_plugin_saves_as_often_as_it_says(vit, digits, path, monkeypatch):
    saves = []
    strategy = ViTNCM(backbone=vit, evaluator=None, plugins=[CheckpointPlugin(path, every_batches=3)])
    monkeypatch.setattr(strategy, "save", lambda p: saves.append(strategy.model.batches))
    train_online(strategy, digits.train_stream[:3])
    assert saves == [3, 6, 9, 12]
    saves.clear()
    strategy = ViTNCM(backbone=vit, evaluator=None, plugins=[CheckpointPlugin(path, every_seconds=1e-6)])
    monkeypatch.setattr(strategy, "save", lambda p: saves.append(strategy.model.batches))
    train_online(strategy, digits.train_stream[:1])
    assert saves == [1, 2, 3, 4]


@pytest.mark.parametrize("options", [{}, {"every_batches": 0}, {"every_seconds": -1.0}], ids=str)
def test_intervals_out_of_range(options, path):
    with pytest.raises(ValueError, match="every_"):
        CheckpointPlugin(path, **options)
