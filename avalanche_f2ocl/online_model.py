"""What every online classifier on a frozen backbone has in common, without Avalanche."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from avalanche_f2ocl.backbone import PromptableViT
from avalanche_f2ocl.batch import OnlineBatch
from avalanche_f2ocl.checks import check_images, check_labels
from avalanche_f2ocl.classes import ClassTable
from avalanche_f2ocl.rows import ClassRows
from avalanche_f2ocl.undo import Undo


@dataclass
class Prediction:
    """What a prediction consists of.

    Attributes:
        logits: ``(B, C)``.
        tokens: the blocks' input, ``(B, T, D)``.
        key_rows: rows of the retrieved class prompts, nearest key first, ``(B, K)``; None without such.
        pool_rows: the same for a pool of prompts that belong to no class.
    """

    logits: Tensor
    tokens: Tensor
    key_rows: Tensor | None = None
    pool_rows: Tensor | None = None


class OnlineModel(nn.Module, ABC):
    """Frozen backbone, class table and head; learns one mini-batch at a time, classes as they come.

    Subclasses say how a mini-batch is learned and how an image is scored.

    Args:
        backbone: the frozen encoder.
        head: see :mod:`avalanche_f2ocl.heads`.

    Attributes:
        batches: mini-batches learned so far.
        optimizer: None where nothing is trained.
    """

    optimizer: torch.optim.Optimizer | None = None

    def __init__(self, backbone: PromptableViT, head: nn.Module) -> None:
        super().__init__()
        self.backbone, self.head, self.classes = backbone, head, ClassTable()
        self.batches = 0

    @abstractmethod
    def learn_batch(self, batch: OnlineBatch) -> None:
        """One online update from a mini-batch that :meth:`begin_batch` made."""

    @abstractmethod
    def predict_batch(self, images: Tensor) -> Prediction:
        """Scores images ``(B, C, H, W)`` on the model's device, unchecked."""

    @abstractmethod
    def batch_logits(self, batch: OnlineBatch) -> Tensor:
        """Label-free scores ``(B, C)`` of a training mini-batch by what earlier ones taught."""

    def add_classes(self, ids: Tensor) -> None:
        """Makes room for new class ids ``(N,)``, int64 on the CPU."""
        self.classes.add(ids)
        self.head.add_rows(len(ids))

    @property
    def class_ids(self) -> Tensor:
        """Ids of the classes so far in order of appearance, ``(C,)`` int64: the logits' columns."""
        return self.classes.used("ids")

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self.classes.ids.device

    def check(self, images: Tensor) -> None:
        """Raises ``TypeError`` or ``ValueError`` unless the model can take ``images``."""
        check_images(images, self.backbone.prepare.inputs, self.backbone.image_size)

    @torch.no_grad()
    def forward(self, images: Tensor) -> Tensor:
        """Scores images, each by itself: the rest of the mini-batch has no say.

        Args:
            images: ``(B, C, H, W)``, uint8 of any size or floats in [0, 1], one or three channels.

        Returns:
            ``(B, C)`` float32, column i for class ``class_ids[i]``.

        Raises:
            TypeError, ValueError: see :func:`avalanche_f2ocl.checks.check_images`.
        """
        self.check(images)
        return self.predict_batch(images.to(self.device)).logits

    def predict(self, images: Tensor) -> Tensor:
        """The class ids of images ``(B, C, H, W)``: ``(B,)`` int64.

        Raises:
            RuntimeError: nothing has been learned yet.
            TypeError, ValueError: as :meth:`forward`.
        """
        if self.batches == 0:
            raise RuntimeError("nothing has been learned yet: call learn(images, labels) first")
        return self.class_ids[self(images).argmax(1)]

    def learn(self, images: Tensor, labels: Tensor | Sequence[int]) -> None:
        """One online update; whatever exception leaves it, nothing has changed then.

        Args:
            images: ``(B, C, H, W)`` as in :meth:`forward`.
            labels: ``(B,)`` class ids, any integers.

        Raises:
            TypeError, ValueError: bad images or labels.
        """
        self.check(images)
        labels = check_labels(labels, len(images))
        with self.undo(self.optimizer) as undo:
            batch = self.begin_batch(images.to(self.device), labels)
            undo.save_rows(batch.class_rows)
            self.learn_batch(batch)

    def undo(self, optimizer: torch.optim.Optimizer | None) -> Undo:
        """Takes back a mini-batch that fails, steps of ``optimizer`` included; for a ``with`` statement."""
        undo = Undo(self._class_rows(), optimizer)
        undo.save_attributes(self, "batches")
        return undo

    def _class_rows(self) -> Iterator[ClassRows]:
        for child in self.children():
            if child is not self.backbone:
                yield from (module for module in child.modules() if isinstance(module, ClassRows))

    def begin_batch(self, images: Tensor, labels: Tensor) -> OnlineBatch:
        """Creates what new classes need and the step's shared state.

        Args:
            images: ``(B, C, H, W)`` on the model's device, checked.
            labels: ``(B,)`` int64 on the CPU, checked.
        """
        new = self.classes.unknown(labels)
        if len(new):
            self.add_classes(new)
        return OnlineBatch(self.backbone, images, self.classes.rows(labels), self.device)

    def get_extra_state(self) -> Tensor:
        return torch.tensor(self.batches)

    def set_extra_state(self, state: Tensor) -> None:
        self.batches = int(state)
