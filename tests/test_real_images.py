"""A trained ViT-Ti on real photographs, where the development data lies beside the repository."""

from pathlib import Path

import pytest
from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import ViTNCM, class_incremental_stream, f2ocl_metrics
from avalanche_f2ocl.evaluation.by_groups import run_online

SHARED = Path(__file__).parents[2] / "shared"
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the development data is not here")
TINY = dict(
    backbone="vit_tiny_patch16_224", weights=SHARED / "weights" / "vit_tiny_patch16_224.safetensors", image_size=112
)


@pytest.mark.parametrize("name, least", [("cifar100.zip", 0.25), ("caltech101.zip", 0.6)])
def test_five_images_a_class_are_enough_to_be_far_above_chance(name, least):
    """Reading from the zip, resizing, normalising and loading weights must all be right for this."""
    stream = class_incremental_stream(SHARED / "data" / name, groups=1, train_per_class=5, test_per_class=4)
    strategy = ViTNCM(**TINY, evaluator=EvaluationPlugin(*f2ocl_metrics()))
    assert run_online(strategy, stream, progress=False).A_n > least
