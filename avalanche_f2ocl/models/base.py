"""What every online classifier on a frozen backbone has in common, without Avalanche."""

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from typing_extensions import Self

from avalanche_f2ocl.arguments import check_names
from avalanche_f2ocl.backbone.devices import numbered
from avalanche_f2ocl.backbone.load import load_backbone
from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.checks import check_labels
from avalanche_f2ocl.models.batch import TrainingBatch
from avalanche_f2ocl.models.class_names import ids_of, one_each
from avalanche_f2ocl.models.corrections import Corrections
from avalanche_f2ocl.models.inputs import Images
from avalanche_f2ocl.models.lock import ModelLock
from avalanche_f2ocl.options import DEFAULT_BACKBONE, EncoderOptions
from avalanche_f2ocl.signatures import SpelledOut
from avalanche_f2ocl.state.class_table import ClassTable
from avalanche_f2ocl.state.row_adam import StepOptimizer, forget_rows, move_state
from avalanche_f2ocl.state.rows import ClassRows, move_only
from avalanche_f2ocl.state.undo import Undo

Labels = Tensor | Sequence[int] | Sequence[str] | int | str
"""Class ids or names: one for each image, or one for all of them."""


class BaseModel(SpelledOut, Corrections):
    """Frozen backbone, class table and head; learns one mini-batch at a time, with new classes as they come.

    Threads may share a model: a prediction made while another thread learns a mini-batch is of the state before or
    after that mini-batch.

    Precision is an option of the backbone and sums are float64, so ``model.float()``, ``.half()`` and ``.double()``
    change nothing; ``.to(device)`` moves the whole model.

    A mini-batch goes through phases, here in :meth:`learn_batch` and in Avalanche's loop by
    :func:`avalanche_f2ocl.strategies.plugins.phase_plugins`: :meth:`begin_batch`; :attr:`passes` optimiser steps on
    :meth:`loss`; and the :attr:`updates`, in their order. Subclasses define these phases and make their head.

    Args:
        backbone: timm name with tag, ``"micro_vit"``, a ViT of timm's, or a :class:`PromptableViT`,
            whose own options then hold.
        weights: local checkpoint for a named backbone.
        image_size: side of the images in pixels; by default the backbone's own.
        device: device of the model; by default the backbone's, and the CPU for a named backbone.
        config: all options at once, of the class's ``config_type``.
        **options: single options, which override ``config``.

    Attributes:
        config: the options that the model was made with.
        trained_on: checksums of the lists of files that ``f2ocl train`` learned; they are saved with the model.

    Raises:
        TypeError, ValueError: an option is unknown or its value is not allowed.
    """

    config_type: ClassVar[type[EncoderOptions]]
    batch_type: ClassVar[type[TrainingBatch]] = TrainingBatch
    config: Any

    def __init__(
        self,
        backbone: str | nn.Module = DEFAULT_BACKBONE,
        *,
        weights: str | Path | None = None,
        image_size: int | None = None,
        device: str | torch.device | None = None,
        config: EncoderOptions | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        if isinstance(backbone, PromptableViT):
            given = options if config is None else asdict(config) | options
            options |= self._options_of(backbone, given)
        check_names(type(self).__name__, options, {field.name for field in fields(self.config_type)})
        self.config = self.config_type(**options) if config is None else replace(config, **options)
        encoder = {name: getattr(self.config, name) for name in PromptableViT.CHOICES if hasattr(self.config, name)}
        self.backbone = load_backbone(backbone, weights, image_size, device=device, **encoder)
        if device is not None:
            self.backbone.to(device)
        self.classes, self.lock = ClassTable(), ModelLock()
        self.batches = 0
        self.trained_on: list[dict[str, Any]] = []
        self.followers: list[Any] = []

    def _options_of(self, backbone: PromptableViT, given: dict[str, Any]) -> dict[str, Any]:
        """The model's options that a given :class:`PromptableViT` has already decided."""
        names = {field.name for field in fields(self.config_type)}
        own = {name: value for name, value in backbone.options.items() if name in names}
        for name, value in given.items():
            if own.get(name, value) != value:
                raise ValueError(f"{name}={value!r}: the given PromptableViT has {name}={own[name]!r}")
        return own

    @property
    def options(self) -> dict[str, Any]:
        """The options that the model was made with, its backbone aside, as JSON values."""
        return json.loads(json.dumps(asdict(self.config)))

    @classmethod
    def from_options(cls, options: Mapping[str, Any], **backbone: Any) -> Self:
        """A new model with :attr:`options`; ``backbone``: its backbone, weights, image_size and device."""
        names = {field.name for field in fields(cls.config_type)}
        own = {name: value for name, value in options.items() if name in names}
        return cls(config=cls.config_type(**own), **backbone)

    @property
    def passes(self) -> int:
        """Optimiser steps on each mini-batch; 0 if nothing is trained."""
        return 0 if self.optimizer is None else 1

    def loss(self, batch: Any) -> Tensor:
        """The loss that each step on the mini-batch minimises, scalar."""
        raise NotImplementedError(f"{type(self).__name__} trains nothing")

    @property
    @abstractmethod
    def updates(self) -> Sequence[Callable[[Any], None]]:
        """Calls made with the mini-batch after its optimiser steps, in this order; the last one counts it."""

    @abstractmethod
    def batch_logits(self, batch: Any) -> Tensor:
        """Label-free scores ``(B, C)`` of a training mini-batch, by what was learned from earlier mini-batches."""

    def encode_batch(self, batch: Any) -> Any:
        """The result of a training mini-batch's first forward pass; available as ``batch.encoded``."""
        return batch.q

    def begin_batch(self, images: Tensor, labels: Tensor) -> Any:
        """Makes room for new classes, and returns what the phases share about the mini-batch.

        Args:
            images: ``(B, C, H, W)`` on the model's device, checked.
            labels: ``(B,)`` int64 on the CPU, checked.
        """
        new = self.classes.unknown(labels)
        if len(new):
            self.add_classes(new)
        rows = self.classes.rows(labels)
        return self.batch_type(images, rows, self.backbone, self.encode_batch)

    def learn_batch(self, batch: Any) -> None:
        """Goes through the phases of a mini-batch that :meth:`begin_batch` made."""
        for _ in range(self.passes):
            self.take_step(batch)
        for update in self.updates:
            update(batch)

    def take_step(self, batch: Any, optimizer: StepOptimizer | None = None) -> None:
        """Takes one step on the loss with ``optimizer``, by default the model's own."""
        optimizer = optimizer or self.optimizer
        assert optimizer is not None  # passes is 0 without an optimiser
        optimizer.zero_grad()
        loss = self.loss(batch)
        if loss.requires_grad:
            loss.backward()
            optimizer.step()

    def learn(self, images: Images, labels: Labels | None = None, *, label: int | str | None = None) -> None:
        """Learns one mini-batch, also under ``no_grad`` or ``inference_mode``. If it raises, the model is unchanged.

        Args:
            images: ``(B, C, H, W)``, paths, PIL images or arrays as in :meth:`forward`.
            labels: ``(B,)`` class ids, which may be any integers; or names, of which new ones get the next free id.
                A single id or name is the label of all images.
            label: one label for all images, in place of ``labels``.

        Raises:
            TypeError, ValueError: the images or labels are not allowed, or ``class_names`` has a name twice.

        Example:
            >>> from avalanche_f2ocl import F2OCLModel
            >>> model = F2OCLModel("micro_vit", prompt_length=2)
            >>> model.learn(torch.randint(0, 256, (3, 3, 32, 32), dtype=torch.uint8), ["cat", "dog", "cat"])
            >>> model.class_names
            {0: 'cat', 1: 'dog'}
        """
        batch = self.batch_of(images)
        with self.lock, torch.inference_mode(False), torch.enable_grad(), self.undo(self.optimizer) as undo:
            self._learn(batch, one_each(labels, label, len(batch)), undo)

    def _learn(self, images: Tensor, labels: Any, undo: Undo) -> None:
        undo.save_attributes(self, "_class_names")
        free = max(self.classes.max_id, *self.class_names, -1) + 1
        ids, self._class_names = ids_of(labels, self.class_names, free)
        batch = self.begin_batch(images.to(self.device), check_labels(ids, len(images)))
        undo.save_rows(batch.class_rows)
        with self.backbone.forgetting_passes():
            self.learn_batch(batch)

    def undo(self, optimizer: StepOptimizer | None) -> Undo:
        """A context manager that undoes a mini-batch if it fails, steps of ``optimizer`` included."""
        undo = Undo(self.learned_parts(), optimizer)
        undo.save_attributes(self, "batches")
        return undo

    def add_classes(self, ids: Tensor) -> None:
        """Makes room for new class ids ``(N,)``, int64 on the CPU."""
        self.classes.add(ids)
        self.head.add_rows(len(ids))

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Loads a state as every module does; the optimiser drops its state of rows whose class changes or goes.

        So a new class starts without optimiser state even after, for example, Avalanche's ``EarlyStoppingPlugin`` has
        restored an earlier state of the model. The optimiser's state of other rows stays.
        """
        before = self.class_ids.tolist()
        result = super().load_state_dict(state_dict, *args, **kwargs)
        now = self.class_ids.tolist()
        rows = [row for row, class_id in enumerate(before) if now[row : row + 1] != [class_id]]
        if self.optimizer is not None and rows:
            for part in self.learned_parts():
                for name in part.row_names if isinstance(part, ClassRows) else ():
                    forget_rows(self.optimizer, getattr(part, name), torch.tensor(rows, device=self.device))
        return result

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Moves the model as every module does; quick if it is there already, since Avalanche calls it often."""
        if len(args) == 1 and not kwargs and isinstance(args[0], (str, torch.device)):
            there = numbered(args[0])
            if all(tensor.device == there for tensor in chain(self.parameters(), self.buffers())):
                return self
        return super().to(*args, **kwargs)

    def _apply(self, fn: Callable, recurse: bool = True) -> Self:
        super()._apply(move_only(fn), recurse)
        if self.optimizer is not None:
            move_state(self.optimizer, self.device)
        return self

    def get_extra_state(self) -> Tensor:
        return torch.tensor(self.batches)

    def set_extra_state(self, state: Tensor) -> None:
        self.batches = int(state)
