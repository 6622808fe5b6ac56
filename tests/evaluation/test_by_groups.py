import numpy as np
import pytest
from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import ViTNCM
from avalanche_f2ocl.evaluation.by_groups import run_online
from tests.helpers import as_tensors, train_online


def test_equals_the_loop_written_out(vit, digits, evaluator):
    run = ViTNCM(backbone=vit, evaluator=evaluator)
    plugins = list(run.plugins)
    result = run_online(run, digits, progress=False)
    assert run.plugins == plugins
    strategy = ViTNCM(backbone=vit, evaluator=None)
    train_online(strategy, digits.train_stream)
    for group, experience in enumerate(digits.test_stream):
        images, labels = as_tensors(experience)
        assert result.T[-1, group] == pytest.approx((strategy.model.predict(images) == labels).double().mean())
    assert result.A_n == pytest.approx(np.nanmean(result.T[-1])) and result.seconds > 0
    assert (result.A_k, result.UB, result.random_key) == (None, None, None)


def test_the_bar_counts_every_image_once(vit, digits, evaluator, capsys):
    run_online(ViTNCM(backbone=vit, evaluator=evaluator), digits, progress="class means")
    said = capsys.readouterr().err
    assert said.startswith("\rclass means: ")
    assert "500/500" in said  # 200 to train on, and 20, 40, ... 100 to test on


def test_without_the_metrics(vit, digits):
    with pytest.raises(ValueError, match="f2ocl_metrics"):
        run_online(ViTNCM(backbone=vit, evaluator=EvaluationPlugin()), digits)
