"""What is particular to F2OCL; what every strategy does is in tests/contracts."""

from types import SimpleNamespace

import pytest
import torch
from avalanche.benchmarks import benchmark_from_datasets
from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import (
    ContrastivePromptPlugin,
    F2OCLStrategy,
    KeyUpdatePlugin,
    PromptGrowthPlugin,
    PrototypeUpdatePlugin,
    ViTNCM,
    class_incremental_stream,
    f2ocl_metrics,
)
from avalanche_f2ocl.evaluation.by_groups import run_online
from tests.helpers import train_online


def result(strategy_class, stream, **options):
    return run_online(strategy_class(evaluator=EvaluationPlugin(*f2ocl_metrics()), **options), stream, progress=False)


@pytest.fixture(scope="module")
def one_group():
    return class_incremental_stream("digits", groups=1, train_per_class=30, test_per_class=15)


def test_label_assignment_collapses_on_real_images(trained_vit):
    """Prompts that encode their label: perfect with the right key, chance with a random one, and with their own
    key no better than the key."""
    stream = class_incremental_stream("digits", groups=5, train_per_class=30, test_per_class=15)
    ncm = result(ViTNCM, stream, backbone=trained_vit)
    literal = result(F2OCLStrategy, stream, backbone=trained_vit, prompt_assignment="label", head_features="z")
    assert literal.UB > 0.97
    assert literal.random_key < 0.2
    assert literal.A_n == pytest.approx(ncm.A_n, abs=0.01)
    assert literal.A_k == pytest.approx(ncm.A_n)


def test_batch_assignment_on_one_group_does_not(trained_vit, one_group):
    ncm = result(ViTNCM, one_group, backbone=trained_vit)
    batch = result(F2OCLStrategy, one_group, backbone=trained_vit)
    assert batch.UB < 0.9
    assert batch.random_key > 0.4
    assert batch.A_n > ncm.A_n - 0.15


def test_the_paper_is_read_literally_and_options_win(vit):
    config = F2OCLStrategy.paper(backbone=vit, evaluator=None).model.config
    assert (config.prompt_assignment, config.key_update, config.lr_decay) == ("label", "gradient", 0)
    assert F2OCLStrategy.paper(backbone=vit, evaluator=None, key_update="mean").model.config.key_update == "mean"


def test_it_is_made_of_plugins_after_the_users(vit):
    user = EvaluationPlugin()
    strategy = F2OCLStrategy(backbone=vit, evaluator=None, passes=3, plugins=[user])
    kinds = [user.__class__, PromptGrowthPlugin, ContrastivePromptPlugin, KeyUpdatePlugin, PrototypeUpdatePlugin]
    assert [type(plugin) for plugin in strategy.plugins[:5]] == kinds
    assert strategy.plugins[2].passes == 3


def test_positional_arguments_are_not_silently_taken(vit):
    with pytest.raises(TypeError):
        F2OCLStrategy(vit)


def test_a_training_loss_is_reported(vit, digits):
    from avalanche.evaluation.metrics import loss_metrics

    evaluator = EvaluationPlugin(loss_metrics(minibatch=True))
    strategy = F2OCLStrategy(backbone=vit, evaluator=evaluator)
    metrics = strategy.train(digits.train_stream[0], eval_streams=[])
    assert 0 < next(iter(metrics.values())) < 10


def test_an_evaluation_draws_nothing_and_gives_no_loss(vit, digits):
    from avalanche.evaluation.metrics import loss_metrics

    strategy = F2OCLStrategy(backbone=vit, prompt_length=2, evaluator=EvaluationPlugin(loss_metrics(stream=True)))
    train_online(strategy, digits.train_stream[:1])
    before = torch.random.get_rng_state()
    metrics = strategy.eval(digits.test_stream[:1])
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.tensor(metrics["Loss_Stream/eval_phase/test_stream"]).isnan()


def test_a_class_id_too_large_for_a_column_is_refused(vit):
    strategy = F2OCLStrategy(backbone=vit, prompt_length=2, evaluator=None)
    strategy.mbatch = [torch.zeros(2, 3, 32, 32, dtype=torch.uint8), torch.tensor([0, 30_000_000])]
    with pytest.raises(ValueError, match="labels hold 30000000: .* must be below 1048576"):
        strategy._unpack_minibatch()
    strategy.model.learn(strategy.mbatch[0], torch.tensor([-(2**63), 2**63 - 1]))
    assert strategy.model.class_ids.tolist() == [-(2**63), 2**63 - 1]


def test_classes_get_the_names_of_the_stream(vit, digits):
    strategy = F2OCLStrategy(backbone=vit, evaluator=None)
    strategy.model.class_names = {digits.class_order[0]: "mine"}
    train_online(strategy, digits.train_stream[:1])
    first, second = digits.class_order[:2]
    assert strategy.model.class_names[first] == "mine" and strategy.model.class_names[second] == str(second)


def test_a_stream_without_names_changes_none(vit, digits):
    plain = benchmark_from_datasets(train=[e.dataset for e in digits.train_stream], test=[])
    plain.train_stream.benchmark = SimpleNamespace(class_names=["a", "list"])
    strategy = F2OCLStrategy(backbone=vit, evaluator=None)
    strategy.train(plain.train_stream[:1], eval_streams=[])
    assert strategy.model.class_names == {}
