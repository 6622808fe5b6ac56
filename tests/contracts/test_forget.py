"""What ``model.forget`` does to what is kept beside a model; what it does to models is in test_strategies.py."""

import torch
from torch import nn

from avalanche_f2ocl.baselines.lwf import HeadLwFPlugin
from avalanche_f2ocl.state.row_adam import remove_row
from avalanche_f2ocl.testing.forgetting import without
from tests.contracts.strategies import STRATEGIES
from tests.helpers import train_online


def test_the_teacher_of_lwf_forgets_too(vit, digits):
    strategy = train_online(STRATEGIES["lwf"](backbone=vit, evaluator=None), digits.train_stream[:2])
    teacher = next(p for p in strategy.plugins if isinstance(p, HeadLwFPlugin)).lwf.prev_model
    weight = teacher.used("weight").detach().clone()
    strategy.model.forget(strategy.model.class_ids[1].item())
    assert torch.equal(teacher.used("weight"), without(weight, 1))


def test_the_reservoir_of_er_drops_the_images(vit, digits):
    strategy = train_online(STRATEGIES["er"](backbone=vit, evaluator=None), digits.train_stream[:2])
    reservoir = strategy.model.followers[0]
    for class_id in strategy.model.class_ids.tolist():
        others = [item for item in reservoir.buffer if item[1] != class_id]
        strategy.model.forget(class_id)
        assert len(reservoir.buffer) == len(reservoir._buffer_weights) == len(others)
        assert all(torch.equal(now[0], then[0]) for now, then in zip(reservoir.buffer, others, strict=True))
    train_online(strategy, digits.train_stream[:1])
    assert len(reservoir.buffer) == 30


def test_momentum_of_another_optimiser():
    dense = nn.Parameter(torch.zeros(3, 2))
    optimizer = torch.optim.SGD([dense], lr=1, momentum=0.9)
    dense.grad = torch.tensor([[1.0, 1], [2, 2], [3, 3]])
    optimizer.step()
    remove_row(optimizer, dense, 1)
    assert optimizer.state[dense]["momentum_buffer"].tolist() == [[1, 1], [3, 3], [0, 0]]
