import pytest
import torch
from avalanche.training.templates import SupervisedTemplate

from avalanche_f2ocl import (
    BeginBatchPlugin,
    ContrastivePromptPlugin,
    F2OCLModel,
    F2OCLStrategy,
    KeyUpdatePlugin,
    PrototypeUpdatePlugin,
)
from tests.helpers import assert_same_state, learned, train_online


def stock_strategy(model, plugins):
    return SupervisedTemplate(
        model=model,
        optimizer=model.optimizer,
        criterion=lambda output, target: output.new_zeros(()),
        train_mb_size=10,
        plugins=plugins,
        evaluator=None,
    )


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("assignment", ["batch", "label"])
def test_on_avalanches_own_template_they_learn_the_same(vit, digits, passes, assignment):
    options = dict(prompt_length=3, passes=passes, prompt_assignment=assignment, head_features="z")
    plugins = [BeginBatchPlugin(), ContrastivePromptPlugin(passes), KeyUpdatePlugin(), PrototypeUpdatePlugin()]
    stock = stock_strategy(F2OCLModel(vit, **options), plugins)
    ours = F2OCLStrategy(backbone=vit, evaluator=None, **options)
    plain = F2OCLModel(vit, **options)
    for strategy in (stock, ours):
        for experience in digits.train_stream[:2]:
            strategy.train(experience, shuffle=False, eval_streams=[])
    for experience in digits.train_stream[:2]:
        for start in range(0, len(experience.dataset), 10):
            items = [experience.dataset[i] for i in range(start, start + 10)]
            plain.learn(torch.stack([x for x, *_ in items]), [y for _, y, *_ in items])
    assert_same_state(learned(stock.model), learned(ours.model))
    assert_same_state(learned(plain), learned(ours.model))


def test_without_growth_the_others_say_what_is_missing(vit, digits):
    strategy = stock_strategy(F2OCLModel(vit), [ContrastivePromptPlugin()])
    with pytest.raises(RuntimeError, match="attach BeginBatchPlugin"):
        train_online(strategy, digits.train_stream[:1])


def test_growth_checks_where_the_strategy_does_not(vit):
    strategy = stock_strategy(F2OCLModel(vit), [])
    strategy.mbatch = [torch.full((2, 3, 32, 32), 7.0), torch.tensor([0, 1])]
    with pytest.raises(ValueError, match="inputs='normalised'"):
        BeginBatchPlugin().before_training_iteration(strategy)
    assert len(strategy.model.class_ids) == 0
