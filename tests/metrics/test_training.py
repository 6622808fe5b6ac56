import io
from types import SimpleNamespace

import pytest
from avalanche.core import SupervisedPlugin
from avalanche.logging import CSVLogger, InteractiveLogger, TensorboardLogger, TextLogger
from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import F2OCLStrategy, ViTNCM, f2ocl_metrics
from avalanche_f2ocl.metrics.training import training_metrics
from tests.helpers import train_online


def run(strategy_class, vit, digits, loggers=(), **options):
    metrics = training_metrics()
    evaluator = EvaluationPlugin(*f2ocl_metrics(), *metrics, loggers=list(loggers))
    strategy = strategy_class(backbone=vit, evaluator=evaluator, **options)
    train_online(strategy, digits.train_stream[:2])
    return strategy, strategy.eval(digits.test_stream[:2]), metrics


class Watch(SupervisedPlugin):
    """The same figures, written out."""

    def __init__(self):
        super().__init__()
        self.losses, self.norms = [], []

    def before_update(self, strategy, **kwargs):
        self.norms.append(strategy.model.pool.prompts.grad.to_dense().norm().item())

    def after_training_iteration(self, strategy, **kwargs):
        self.losses.append(strategy.loss.item())


@pytest.mark.parametrize("options", [{}, {"prompt_assignment": "shared"}], ids=str)
def test_figures_are_those_of_the_run(vit, digits, options):
    watch = Watch()
    strategy, results, (loss, gradient, norm, keys) = run(
        F2OCLStrategy, vit, digits, plugins=[watch], prompt_length=3, **options
    )
    assert len(watch.norms) == 8 and gradient.result() == pytest.approx(watch.norms[-1], rel=1e-5)
    history = strategy.evaluator.get_all_metrics()
    losses = history["Loss_MB/train_phase/train_online_stream"][1]
    assert losses == pytest.approx(watch.losses)
    assert history["GradientNorm/train_phase/train_online_stream"][1] == pytest.approx(watch.norms, rel=1e-5)
    pool = strategy.model.pool
    prompts = pool.prompts if "prompt_assignment" in options else pool.prompts[: len(strategy.model.class_ids)]
    assert norm.result() == pytest.approx(prompts.detach().norm(dim=2).mean().item())
    if options:
        assert keys.result() == {}
    else:
        assert sum(keys.result().values()) == 40 and set(keys.result()) <= set(strategy.model.class_ids.tolist())
        assert results["ChosenKeys/eval_phase/test_stream"] is not None


def test_strategies_without_prompts_have_none(vit, digits):
    _, results, (_, gradient, norm, keys) = run(ViTNCM, vit, digits)
    assert gradient.result() is None and norm.result() is None and keys.result() == {}


def test_every_logger_takes_them(vit, digits, tmp_path, capsys):
    text = io.StringIO()
    loggers = [
        InteractiveLogger(), TextLogger(text), CSVLogger(tmp_path / "csv"), TensorboardLogger(tmp_path / "board")
    ]  # fmt: skip
    strategy, *_ = run(F2OCLStrategy, vit, digits, loggers, prompt_length=3)
    for name in ("A_n", "A_k", "PromptNorm", "ChosenKeys", "Loss_MB", "GradientNorm"):
        assert name in text.getvalue() and name in capsys.readouterr().out + text.getvalue()
    loggers[3].writer.flush()
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(tmp_path / "board"))
    board.Reload()
    tags = board.Tags()
    assert len(board.Scalars("GradientNorm/train_phase/train_online_stream")) == 8
    assert {"A_n/eval_phase/test_stream", "PromptNorm/eval_phase/test_stream"} <= set(tags["scalars"])
    assert tags["histograms"] == ["ChosenKeys/eval_phase/test_stream"]


def test_wandb_offline(vit, digits, tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    from avalanche.logging import WandBLogger

    # Avalanche's logger asks for two names that newer releases of wandb do not have.
    monkeypatch.setattr(wandb, "viz", SimpleNamespace(CustomChart=type(None)), raising=False)
    monkeypatch.setenv("WANDB_RUN_ID", "test")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.chdir(tmp_path)
    logger = WandBLogger(project_name="f2ocl", run_name="test", dir=str(tmp_path))
    run(F2OCLStrategy, vit, digits, [logger], prompt_length=3)
    done = wandb.run
    done.log({}, commit=True)
    logged = dict(done.summary)
    wandb.finish()
    assert logged["GradientNorm/train_phase/train_online_stream"] > 0
    assert {"A_n/eval_phase/test_stream", "ChosenKeys/eval_phase/test_stream"} <= logged.keys()
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))


@pytest.mark.parametrize("make", [F2OCLStrategy, F2OCLStrategy.best, ViTNCM])
def test_an_evaluation_before_training(make, vit, digits):
    strategy = make(backbone=vit, evaluator=EvaluationPlugin(*training_metrics()), eval_every=0)
    metrics = strategy.eval(digits.test_stream[:1])
    assert not any("ChosenKeys" in name or "PromptNorm" in name for name in metrics)
    strategy.train(digits.train_stream[0], eval_streams=[digits.test_stream[:1]])
    assert any("Loss_MB" in name for name in strategy.evaluator.get_last_metrics())
