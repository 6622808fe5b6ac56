import pytest
from avalanche.benchmarks import split_online_stream

from avalanche_f2ocl import FrozenBackbone, FrozenModel
from avalanche_f2ocl.strategies.boundaries import AtBoundaries


class Count(AtBoundaries):
    def __init__(self):
        super().__init__()
        self.calls = []

    def at_boundary(self, strategy):
        self.calls.append(strategy.model.batches)


@pytest.mark.parametrize("online", [False, True])
def test_a_task_ends_with_a_plain_experience_or_a_call_of_train_on_an_online_stream(small_vit, digits, online):
    count = Count()
    strategy = FrozenBackbone(backbone=small_vit, evaluator=None, plugins=[count], train_mb_size=20)
    parts = digits.train_stream[:2]
    for part in parts:
        strategy.train(split_online_stream([part], 20, shuffle=False) if online else part, eval_streams=[])
    assert count.calls == [2, 4]


def test_a_frozen_model_is_told_only_if_its_penalty_wants_to_know(small_vit, digits):
    ends = []
    for penalty in ("past", "task"):
        strategy = FrozenBackbone(
            backbone=small_vit, evaluator=None, head="ridge", projection=0, penalty=penalty, train_mb_size=20
        )
        strategy.train(digits.train_stream[0], eval_streams=[])
        ends.append(getattr(strategy.model.head, "penalty", None))
    assert ends[0] is None and ends[1] > 0


def test_other_models_take_no_notice(small_vit, images, labels):
    model = FrozenModel(small_vit)
    model.learn(images, labels)
    model.end_task()
    assert model.predict(images).shape == (12,)
