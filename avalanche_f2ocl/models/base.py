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
    """Frozen backbone, class table and head; learns one mini-batch at a time, classes as they come.

    Threads may share a model: a prediction while another thread learns is of the state before or after that mini-batch.

    Precision is an option of the backbone and sums are float64, so ``model.float()``, ``.half()`` and ``.double()``
    change nothing; ``.to(device)`` moves all of it.

    A mini-batch passes through phases, which :meth:`learn_batch` walks here and
    :func:`avalanche_f2ocl.strategies.plugins.phase_plugins` walks in Avalanche's loop: :meth:`begin_batch`;
    :attr:`passes` optimiser steps on :meth:`loss`; and the :attr:`updates`, in their order. Subclasses say what
    these are, and make their head.

    Args:
        backbone: timm name with tag, ``"micro_vit"``, a ViT of timm's, or a :class:`PromptableViT`,
            whose own options then hold.
        weights: local checkpoint for a named backbone.
        image_size: side in pixels; default the backbone's own.
        device: where it is put; default where the backbone is, for a named one the CPU.
        config: all options at once, of the class's ``config_type``.
        **options: single options, over ``config``.

    Attributes:
        config: what it was made with.
        trained_on: checksums of the lists of files that ``f2ocl train`` learned; they go into files.

    Raises:
        TypeError, ValueError: an option that there is not, or is not allowed.
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
        """The model's options that a backbone has which is wrapped already."""
        names = {field.name for field in fields(self.config_type)}
        own = {name: value for name, value in backbone.options.items() if name in names}
        for name, value in given.items():
            if own.get(name, value) != value:
                raise ValueError(f"{name}={value!r}: the given PromptableViT has {name}={own[name]!r}")
        return own

    @property
    def options(self) -> dict[str, Any]:
        """What the model was made with, its backbone aside, as JSON knows it."""
        return json.loads(json.dumps(asdict(self.config)))

    @classmethod
    def from_options(cls, options: Mapping[str, Any], **backbone: Any) -> Self:
        """A new model with :attr:`options`; ``backbone``: its backbone, weights, image_size and device."""
        names = {field.name for field in fields(cls.config_type)}
        own = {name: value for name, value in options.items() if name in names}
        return cls(config=cls.config_type(**own), **backbone)

    @property
    def passes(self) -> int:
        """Optimiser steps on each mini-batch; 0 where nothing is trained."""
        return 0 if self.optimizer is None else 1

    def loss(self, batch: Any) -> Tensor:
        """What each step on the mini-batch is taken on, scalar."""
        raise NotImplementedError(f"{type(self).__name__} trains nothing")

    @property
    @abstractmethod
    def updates(self) -> Sequence[Callable[[Any], None]]:
        """What is done with the mini-batch after its optimiser steps, in this order; the last one counts it."""

    @abstractmethod
    def batch_logits(self, batch: Any) -> Tensor:
        """Label-free scores ``(B, C)`` of a training mini-batch by what earlier ones taught."""

    def encode_batch(self, batch: Any) -> Any:
        """What is made of a training mini-batch in its first forward pass; asked for as ``batch.encoded``."""
        return batch.q

    def begin_batch(self, images: Tensor, labels: Tensor) -> Any:
        """Creates what new classes need; what the phases share of the mini-batch.

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
        """Walks the phases of a mini-batch that :meth:`begin_batch` made."""
        for _ in range(self.passes):
            self.take_step(batch)
        for update in self.updates:
            update(batch)

    def take_step(self, batch: Any, optimizer: StepOptimizer | None = None) -> None:
        """One optimiser step on the loss; ``optimizer``: default the model's own."""
        optimizer = optimizer or self.optimizer
        assert optimizer is not None  # passes is 0 where there is none
        optimizer.zero_grad()
        loss = self.loss(batch)
        if loss.requires_grad:
            loss.backward()
            optimizer.step()

    def learn(self, images: Images, labels: Labels | None = None, *, label: int | str | None = None) -> None:
        """One online update, also under ``no_grad`` or ``inference_mode``. If it raises, the model is unchanged.

        Args:
            images: ``(B, C, H, W)``, paths, PIL images or arrays as in :meth:`forward`.
            labels: ``(B,)`` class ids, any integers; or names: those in ``class_names``, and for a new one the next id.
                A single id or name is that of all images.
            label: the same of all images, in place of ``labels``.

        Raises:
            TypeError, ValueError: bad images or labels; ``class_names`` with a name twice.

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
        """Takes back a mini-batch that fails, steps of ``optimizer`` included; for a ``with`` statement."""
        undo = Undo(self.learned_parts(), optimizer)
        undo.save_attributes(self, "batches")
        return undo

    def add_classes(self, ids: Tensor) -> None:
        """Makes room for new class ids ``(N,)``, int64 on the CPU."""
        self.classes.add(ids)
        self.head.add_rows(len(ids))

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """As every module's; the optimiser forgets its state of rows that had another class before, or now have none.

        So a class that comes new starts from nothing there, after Avalanche's ``EarlyStoppingPlugin`` has put an
        earlier state back, say. State of the other rows stays.
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
        """As every module's; where all of it is there already, which Avalanche asks at each experience, it is quick."""
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
