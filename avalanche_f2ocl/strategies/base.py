"""Avalanche's training loop for a :class:`avalanche_f2ocl.models.base.BaseModel`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import torch
from avalanche.benchmarks import OnlineCLExperience
from avalanche.core import SupervisedPlugin
from avalanche.training.plugins import EvaluationPlugin
from avalanche.training.plugins.evaluation import default_evaluator
from avalanche.training.templates import SupervisedTemplate
from torch import Tensor, nn

from avalanche_f2ocl.arguments import check_choice, check_positive_int
from avalanche_f2ocl.backbone.devices import default_device
from avalanche_f2ocl.checks import check_labels
from avalanche_f2ocl.heads import MASKED_LOGIT
from avalanche_f2ocl.metrics.avalanche_forgetting import warn_of_wrong_forgetting
from avalanche_f2ocl.metrics.groups import origin
from avalanche_f2ocl.models.base import BaseModel
from avalanche_f2ocl.models.class_names import told_apart
from avalanche_f2ocl.models.prediction import Prediction
from avalanche_f2ocl.options import DEFAULT_BACKBONE
from avalanche_f2ocl.ranks import agree, world_size
from avalanche_f2ocl.signatures import SpelledOut
from avalanche_f2ocl.state.undo import Undo
from avalanche_f2ocl.strategies.guarded_epoch import GuardedEpoch
from avalanche_f2ocl.strategies.plugins import phase_plugins
from avalanche_f2ocl.strategies.quiet_evaluator import QuietEvaluator, or_silent
from avalanche_f2ocl.strategies.resuming import Resumable
from avalanche_f2ocl.strategies.template_overrides import NoOptimizer, TemplateOverrides

_OF_A_MINI_BATCH = (
    "mbatch", "mb_output", "loss", "mb_labels", "mb_prediction", "checked_minibatch", "training_batch",
)  # fmt: skip

MOST_COLUMNS = 2**20
"""Largest number of columns of a strategy's logits, at which 10 samples take 40 MB."""


class BaseStrategy(SpelledOut, Resumable, GuardedEpoch, TemplateOverrides, SupervisedTemplate):
    """Base class of the strategies: task-free, with one online update per mini-batch.

    A subclass names its ``model_type``; the model's phases become plugins, see
    :func:`avalanche_f2ocl.strategies.plugins.phase_plugins`.

    A strategy works on plain experiences and on ``split_online_stream``, with or without task attributes, which it
    never reads. Images and labels are checked on the host before they are moved to the device.

    A mini-batch is learned as a whole or not at all: if the data, a plugin or the device raises an exception, the model
    and the optimiser are as they were before the mini-batch. Metrics and other plugins keep their own state; a plugin
    that learns can have its state restored too, by ``strategy.undo.save_attributes`` in ``before_training_iteration``.

    The columns of ``mb_output`` are class ids, with :data:`avalanche_f2ocl.heads.MASKED_LOGIT` for classes that have
    not been seen. In training the output is computed without labels and before the update. Before anything has been
    learned, an additional column is added and wins, so that no image counts as right.

    Args:
        backbone: timm name with tag, ``"micro_vit"``, or a ViT of timm's (frozen in place).
        device: by default CUDA if there is a CUDA device, else the CPU.
        train_mb_size, train_epochs, eval_mb_size: as in Avalanche: images of a training mini-batch, passes over an
            experience, images of an evaluation mini-batch.
        plugins, evaluator, eval_every, peval_mode: as in Avalanche: plugins, the evaluation plugin (None for no
            metrics), and how often ``train`` evaluates.
        on_bad_input: what to do about bad input in training. ``"raise"`` raises every exception. ``"skip"`` continues
            with the next mini-batch if one cannot be fetched, fails its checks, or runs out of the device's memory; a
            warning is given the first time. Errors of plugins are not bad input and are always raised. A data
            loader that is a generator, such as Avalanche's for replay, ends when it fails, and so does the epoch.
            Several processes skip a mini-batch together.
        **options: options of the model.

    Attributes:
        skipped: number of mini-batches skipped so far.
        undo: the open undo block of the current training mini-batch.
        mb_labels: labels of the current mini-batch on the CPU, ``(B,)`` int64.
        mb_prediction: parts of the prediction of the current evaluation mini-batch.
        checked_minibatch: the current mini-batch as it was checked, on the device.
        training_batch: what the plugins share about the current training mini-batch.

    Raises:
        TypeError, ValueError: an option is not allowed; in ``train`` and ``eval``, images or labels are not allowed.
        RuntimeError: there are several processes, but the strategy does not have ``shares_work``.
    """

    model_type: ClassVar[type[BaseModel]]
    shares_work = False
    """Whether the strategy runs in several processes, see :mod:`avalanche_f2ocl.ranks`."""

    def __init__(
        self,
        *,
        backbone: str | nn.Module = DEFAULT_BACKBONE,
        device: str | torch.device | None = None,
        train_mb_size: int = 10,
        train_epochs: int = 1,
        eval_mb_size: int = 128,
        plugins: Sequence[SupervisedPlugin] | None = None,
        evaluator: EvaluationPlugin | Callable[[], EvaluationPlugin] | None = default_evaluator,
        eval_every: int = -1,
        peval_mode: Literal["epoch", "experience", "iteration"] = "epoch",
        on_bad_input: Literal["raise", "skip"] = "raise",
        **options: Any,
    ):
        for name, value in (
            ("train_mb_size", train_mb_size),
            ("train_epochs", train_epochs),
            ("eval_mb_size", eval_mb_size),
        ):
            check_positive_int(name, value)
        check_choice("on_bad_input", on_bad_input, ("raise", "skip"))
        if world_size() > 1 and not self.shares_work:
            raise RuntimeError(f"{type(self).__name__} does not run in several processes: start it without torchrun")
        device = default_device(device)
        model = self.model_type(backbone, device=device, **options)
        super().__init__(
            model=model,
            optimizer=NoOptimizer() if model.optimizer is None else model.optimizer,
            train_mb_size=train_mb_size,
            train_epochs=train_epochs,
            eval_mb_size=eval_mb_size,
            device=device,
            plugins=[*(plugins or []), *self.method_plugins(model)],
            evaluator=or_silent(evaluator),
            eval_every=eval_every,
            peval_mode=peval_mode,
        )
        self.plugins = [QuietEvaluator(p) if p is self.evaluator else p for p in self.plugins]
        self.seed, self.on_bad_input = model.config.seed, on_bad_input
        self.skipped, self._warned_of_forgetting = 0, False
        self.undo: Undo | None = None
        self.model.to(self.device)
        self.mb_labels: Any = None
        self.mb_prediction: Prediction | None = None
        self.checked_minibatch: tuple[Tensor, ...] | None = None
        self.training_batch: Any = None

    def method_plugins(self, model: BaseModel) -> list[SupervisedPlugin]:
        """The plugins that make the method, after the user's; by default the model's phases."""
        return phase_plugins(model)

    def _before_training_exp(self, **kwargs):
        if isinstance(self.experience, OnlineCLExperience) and not self._warned_of_forgetting:
            self._warned_of_forgetting = True
            warn_of_wrong_forgetting(self.evaluator.metrics)
        names = getattr(getattr(origin(self.experience).origin_stream, "benchmark", None), "class_names", None)
        if isinstance(names, Mapping):
            self.model.class_names = told_apart({**told_apart(names), **self.model.class_names})
        super()._before_training_exp(**kwargs)

    def _unpack_minibatch(self):
        try:
            self._check_minibatch()
        except Exception:
            self._say_unusable()
            raise
        if self.is_training:
            agree(self.mb_labels)

    def _check_minibatch(self) -> None:
        images, labels, *rest = self.mbatch
        self.model.check(images)
        host_labels = check_labels(labels, len(images))
        if host_labels.min() < 0:
            raise ValueError(
                f"labels hold {int(host_labels.min())}: in Avalanche a class id is a column of the logits, "
                "so it must be 0 or more (F2OCLModel alone takes any integers)"
            )
        if host_labels.max() >= MOST_COLUMNS:
            raise ValueError(
                f"labels hold {int(host_labels.max())}: in Avalanche a class id is a column of the logits, so it must "
                f"be below {MOST_COLUMNS}; number the classes from 0, or use the model without Avalanche"
            )
        self.mb_labels = host_labels
        self.mbatch = [t.to(self.device, non_blocking=True) for t in (images, labels.long(), *rest)]
        self.checked_minibatch = tuple(self.mbatch)

    def forward(self):
        if self.is_training:
            return self._class_columns(self.model.batch_logits(self.training_batch))
        self.mb_prediction = self.model.predict_batch(self.mb_x)
        return self._class_columns(self.mb_prediction.logits)

    def _class_columns(self, logits: Tensor) -> Tensor:
        """Rearranges logits ``(B, C)`` from a column per row of the class table to a column per class id."""
        width = 1 + max(self.model.classes.max_id, int(self.mb_labels.max()))
        nothing_learned = self.model.batches == 0
        columns = logits.new_full((len(logits), width + nothing_learned), MASKED_LOGIT)
        columns[:, self.model.class_ids] = logits
        if nothing_learned:
            columns[:, -1] = 0
        return columns

    def criterion(self):
        """Zero in training, where losses come from plugins; NaN in evaluation, which has no loss."""
        empty = self._make_empty_loss()
        return empty if self.is_training else empty + float("nan")

    def backward(self):
        if self.loss.requires_grad:
            super().backward()

    def _before_eval(self, **kwargs):
        self.model.to(self.device)
        super()._before_eval(**kwargs)

    def _train_cleanup(self):
        super()._train_cleanup()
        self._forget_minibatch()
        # The gradient of a linear head on a mini-batch of one image is that image's embedding.
        self.optimizer.zero_grad()

    def _save_train_state(self):
        return super()._save_train_state() | {name: getattr(self, name) for name in _OF_A_MINI_BATCH}

    def _load_train_state(self, prev_state):
        """Restores the state of a mini-batch after a callback has evaluated in the middle of it."""
        super()._load_train_state(prev_state)
        for name in _OF_A_MINI_BATCH:
            setattr(self, name, prev_state[name])

    def _eval_cleanup(self):
        super()._eval_cleanup()
        self._forget_minibatch()

    def _forget_minibatch(self):
        self.mbatch = self.mb_output = None
        self.loss = self._make_empty_loss()
        self.mb_labels = self.mb_prediction = self.checked_minibatch = self.training_batch = None
