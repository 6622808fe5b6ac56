import json
from pathlib import Path

import pytest
import torch
from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import (
    F2OCLModel,
    F2OCLStrategy,
    ViTNCM,
    ViTNCMModel,
    class_incremental_stream,
    f2ocl_metrics,
    load_model,
    online_stream,
)

FOLDER = Path(__file__).parents[1] / "data" / "version_0_1"
NEW = {
    "F2OCLStrategy": {"fit": "squash", "head_features": "z"},
    "ViTNCM": {"fit": "squash", "blocks": 4, "blocks_per_head": 4, "vote": "equal"},
}
"""What a strategy of today must be told to do as version 0.1 did."""
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
MADE = {
    "F2OCLStrategy": (F2OCLStrategy, F2OCLModel, dict(prompt_length=2, compensate_drift=True)),
    "ViTNCM": (ViTNCM, ViTNCMModel, dict(head="ridge", head_features="layers", projection=20)),
}


@pytest.fixture
def noise():
    return torch.randint(0, 256, (6, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def close(logits, expected):
    # Learned on another processor, perhaps.
    torch.testing.assert_close(logits, torch.tensor(expected), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("name", MADE)
def test_a_model_and_a_strategy_open_it(name, noise):
    strategy_type, model_type, options = MADE[name]
    path, expected = FOLDER / f"{name}.safetensors", EXPECTED[name]
    strategy = strategy_type.load(path, evaluator=None, device="cpu")
    for model in (load_model(path, device="cpu"), model_type.from_file(path, device="cpu"), strategy.model):
        assert type(model) is model_type and model.class_ids.tolist() == expected["class_ids"]
        assert model.class_names == {i: f"digit {i}" for i in expected["class_ids"]} and model.batches == 2
        assert {name: model.options[name] for name in options} == options
        close(model(noise), expected["logits"])
        assert model.options["fit"] == model.backbone.image_fit.fit == "squash"


@pytest.mark.parametrize("name", MADE)
def test_a_run_goes_on(name, noise):
    make, _, options = MADE[name]
    stream = class_incremental_stream("digits", groups=2, train_per_class=4, test_per_class=4)
    evaluator = EvaluationPlugin(*f2ocl_metrics())
    path = FOLDER / f"{name}.safetensors"
    with pytest.raises(ValueError, match="other options: .*fit='squash' there, 'auto' here"):
        make(backbone="micro_vit", evaluator=None, device="cpu", **options).resume(path)
    strategy = make(backbone="micro_vit", evaluator=evaluator, device="cpu", **NEW[name], **options)
    assert strategy.resume(path)
    for i, experience in enumerate(stream.train_stream):
        strategy.train(online_stream([experience], 10), eval_streams=[])
        metrics = strategy.eval(stream.test_stream[: i + 1])
    assert not strategy.catching_up and strategy.model.batches == 4
    close(strategy.model(noise), EXPECTED[name]["logits_of_the_whole_run"])
    A_n = next(value for metric, value in metrics.items() if metric.startswith("A_n/"))
    assert A_n == pytest.approx(EXPECTED[name]["A_n"], abs=0.03)
