"""Every baseline that trains does learn: its loss falls and it ends above chance."""

import numpy as np
import pytest
from avalanche.core import SupervisedPlugin
from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import class_incremental_stream, f2ocl_metrics
from avalanche_f2ocl.baselines import ER, L2P, MVP, CODAPrompt, DualPrompt, LwF, SinglePrompt
from tests.helpers import train_online

BASELINES = {
    "er": lambda **o: ER(**o),
    "lwf": lambda **o: LwF(lr=0.03, **o),
    "lwf-task-free": lambda **o: LwF(lr=0.03, refresh_every=10, **o),
    "l2p": lambda **o: L2P(lr=0.01, **o),
    "l2p-mask": lambda **o: L2P(lr=0.01, mask_logits="batch", **o),
    "l2p-ncm": lambda **o: L2P(lr=0.01, classifier="ncm", **o),
    "coda-prompt": lambda **o: CODAPrompt(lr=0.005, **o),
    "mvp": lambda **o: MVP(lr=0.02, passes=1, augment="none", **o),
    "single-prompt": lambda **o: SinglePrompt(passes=1, augment="crop", **o),
    "dualprompt": lambda **o: DualPrompt(lr=0.005, **o),
    "dualprompt-mask": lambda **o: DualPrompt(lr=0.005, mask_logits="batch", **o),
    "dualprompt-ncm": lambda **o: DualPrompt(lr=0.005, classifier="ncm", **o),
}
NO_PROMPTS = ("er", "lwf", "lwf-task-free")
"""They train a linear classifier alone, which takes longer to learn."""


@pytest.mark.parametrize("name", BASELINES)
def test_loss_falls_and_accuracy_is_above_chance(name, vit):
    losses = []

    class Losses(SupervisedPlugin):
        def after_update(self, strategy, **kwargs):
            losses.append(strategy.loss.item())

    evaluator = EvaluationPlugin(*f2ocl_metrics())
    per_class = 50 if name in NO_PROMPTS else 30
    stream = class_incremental_stream("digits", groups=1, train_per_class=per_class, test_per_class=10)
    strategy = BASELINES[name](backbone=vit, evaluator=evaluator, plugins=[Losses()])
    train_online(strategy, stream.train_stream)
    metrics = strategy.eval(stream.test_stream)
    assert len(losses) == per_class
    assert np.mean(losses[-6:]) < 0.9 * np.mean(losses[:6])
    assert metrics["A_n/eval_phase/test_stream"] > 0.25
