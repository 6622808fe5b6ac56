import pytest
import torch
from avalanche.core import SupervisedPlugin

from avalanche_f2ocl.baselines import LwF
from avalanche_f2ocl.baselines.lwf import HeadLwFPlugin
from tests.helpers import train_online


def teacher(strategy):
    return next(p for p in strategy.plugins if isinstance(p, HeadLwFPlugin)).lwf.prev_model


@pytest.mark.parametrize("online", [True, False], ids=["online", "plain"])
def test_the_teacher_is_the_head_at_the_last_boundary(vit, digits, online):
    strategy = LwF(backbone=vit, evaluator=None)
    heads = []
    for experience in digits.train_stream[:2]:
        if online:
            train_online(strategy, [experience])
        else:
            strategy.train(experience, eval_streams=[])
        heads.append(strategy.model.head.used("weight").detach().clone())
        assert torch.equal(teacher(strategy).used("weight"), heads[-1])
    assert heads[0].shape == (2, 128) and heads[1].shape == (4, 128)
    assert not any(name.startswith("backbone") for name, _ in teacher(strategy).named_parameters())


def test_the_loss_by_hand(vit, digits):
    """Cross-entropy plus alpha times the KL divergence of softened outputs on the teacher's classes."""
    alpha, temperature = 3.0, 2.0
    strategy = LwF(backbone=vit, alpha=alpha, distillation_temperature=temperature, evaluator=None)
    train_online(strategy, digits.train_stream[:1])
    total, expected = [], []

    class Check(SupervisedPlugin):
        def before_backward(self, strategy, **kwargs):
            q, head = strategy.training_batch.q, strategy.model.head
            out, old = head(q).detach(), teacher(strategy)(q).detach()
            new_p = torch.softmax(out[:, :2] / temperature, 1)
            old_p = torch.softmax(old / temperature, 1)
            divergence = (old_p * (old_p / new_p).log()).sum(1).mean()
            cross_entropy = -torch.log_softmax(out, 1)[torch.arange(10), strategy.training_batch.rows].mean()
            expected.append((cross_entropy + alpha * divergence).item())
            total.append(strategy.loss.item())

    strategy.plugins.append(Check())
    train_online(strategy, digits.train_stream[1:2])
    assert len(total) == 4 and total == pytest.approx(expected, rel=1e-4)


def test_without_boundaries_the_teacher_is_the_head_of_every_nth_minibatch(vit, digits):
    strategy = LwF(backbone=vit, refresh_every=3, evaluator=None)
    heads, teachers = [], []

    class Note(SupervisedPlugin):
        def after_training_iteration(self, strategy, **kwargs):
            heads.append(strategy.model.head.used("weight").detach().clone())
            teachers.append(teacher(strategy) and teacher(strategy).used("weight").detach().clone())

    strategy.plugins.append(Note())
    train_online(strategy, digits.train_stream[:2])
    assert len(heads) == 8 and teachers[:2] == [None, None]
    for i in range(2, 8):
        assert torch.equal(teachers[i], heads[2 if i < 5 else 5])


def test_plain_experiences_need_no_boundaries_either(vit, digits):
    strategy = LwF(backbone=vit, refresh_every=100, evaluator=None)
    strategy.train(digits.train_stream[0], eval_streams=[])
    assert teacher(strategy) is None


def test_refresh_out_of_range(vit):
    with pytest.raises(ValueError, match="refresh_every=0"):
        LwF(backbone=vit, refresh_every=0, evaluator=None)
