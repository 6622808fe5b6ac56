"""What every online classifier on a frozen backbone has in common, without Avalanche."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from avalanche_f2ocl.arguments import check_positive, check_positive_int
from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.checks import check_images, check_labels
from avalanche_f2ocl.models.batch import OnlineBatch
from avalanche_f2ocl.state.class_table import ClassTable
from avalanche_f2ocl.state.row_adam import remove_row
from avalanche_f2ocl.state.rows import ClassRows
from avalanche_f2ocl.state.undo import Undo


@dataclass
class Prediction:
    """What a prediction consists of.

    Attributes:
        logits: ``(B, C)``.
        tokens: the blocks' input, ``(B, T, D)``.
        unprompted: embeddings without prompts, ``(B, D)``, and layers where the head needs them.
        key_rows: rows of the retrieved class prompts, nearest key first, ``(B, K)``; None without such.
        pool_rows: the same for a pool of prompts that belong to no class.
    """

    logits: Tensor
    tokens: Tensor
    unprompted: tuple[Tensor, Tensor | None] | None = None
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
        class_names: by class id, where given; they go into files.
        followers: objects outside the model with a ``forget_class(class_id, row)`` that :meth:`forget` calls.
    """

    optimizer: Any = None
    head: Any
    temperature: float = 1.0

    def __init__(self, backbone: PromptableViT, head: nn.Module) -> None:
        super().__init__()
        self.backbone, self.head, self.classes = backbone, head, ClassTable()
        self.batches = 0
        self.class_names: dict[int, str] = {}
        self.followers: list[Any] = []

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

    def forget(self, class_id: int) -> None:
        """Removes a class: its id, head rows, key and prompt, and what the optimiser remembers of them.

        The other classes keep their values, bit for bit, and their order; the logits lose a column. If the
        class comes again it is new. With the last class gone, ``batches`` is 0: nothing has been learned.
        Not to be called between the begin and the end of a mini-batch.

        What other parts learned from the class's images stays, since it cannot be told apart: the prompts of
        other classes were trained against it and, where they were elected for a mixed mini-batch, on it; the
        linear rows of other classes were pushed away from it; prompts shared by all classes (L2P, DualPrompt)
        and their moments were trained on it.

        Args:
            class_id: one of ``class_ids``.

        Raises:
            KeyError: the class is not known.

        Example:
            >>> from avalanche_f2ocl import F2OCLModel
            >>> model = F2OCLModel("micro_vit", prompt_length=2)
            >>> model.learn(torch.randint(0, 256, (3, 3, 32, 32), dtype=torch.uint8), [7, -3, 5])
            >>> model.forget(5)
            >>> model.class_ids.tolist()
            [-3, 7]
        """
        row = int(self.classes.rows(torch.tensor([class_id])))
        if row < 0:
            raise KeyError(f"class {class_id} is not known: {len(self.classes)} classes have been learned")
        for module in self._class_rows():
            module.remove_row(row)
            for parameter in module.parameters() if self.optimizer is not None else ():
                remove_row(self.optimizer, parameter, row)
        self.class_names.pop(class_id, None)
        for follower in self.followers:
            follower.forget_class(class_id, row)
        if len(self.classes) == 0:
            self.batches = 0

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
        self._check_learned()
        return self.class_ids[self(images).argmax(1)]

    def predict_proba(self, images: Tensor, temperature: float | None = None) -> Tensor:
        """Softmax of the logits over a temperature; good for an order and a threshold, not calibrated.

        Args:
            images: ``(B, C, H, W)`` as in :meth:`forward`.
            temperature: divides the logits; None for that of the contrastive loss where logits are cosines, else 1.

        Returns:
            ``(B, C)`` float32, column i for class ``class_ids[i]``.

        Raises:
            RuntimeError, TypeError, ValueError: as :meth:`predict`; a temperature that is not positive.

        Example:
            >>> from avalanche_f2ocl import F2OCLModel
            >>> model = F2OCLModel("micro_vit", prompt_length=2)
            >>> images = torch.randint(0, 256, (3, 3, 32, 32), dtype=torch.uint8)
            >>> model.learn(images, [7, -3, 7])
            >>> model.predict_proba(images).shape
            torch.Size([3, 2])
        """
        if temperature is not None:
            check_positive("temperature", temperature)
        self._check_learned()
        return (self(images) / (self.temperature if temperature is None else temperature)).softmax(1)

    def topk(self, images: Tensor, k: int = 5) -> tuple[Tensor, Tensor]:
        """The k likeliest classes of each image.

        Args:
            images: ``(B, C, H, W)`` as in :meth:`forward`.
            k: at least 1; with fewer classes, all of them.

        Returns:
            Class ids ``(B, k)`` int64 and :meth:`predict_proba` of them ``(B, k)`` float32, likeliest first.

        Raises:
            RuntimeError, TypeError, ValueError: as :meth:`predict`, or k is no positive int.
        """
        check_positive_int("k", k)
        probabilities, columns = self.predict_proba(images).topk(min(k, max(1, len(self.classes))), dim=1)
        return self.class_ids[columns], probabilities

    def learn(self, images: Tensor, labels: Tensor | Sequence[int] | Sequence[str]) -> None:
        """One online update; whatever exception leaves it, nothing has changed then.

        Args:
            images: ``(B, C, H, W)`` as in :meth:`forward`.
            labels: ``(B,)`` class ids, any integers; or names: those in ``class_names``, and for a new one the next id.

        Raises:
            TypeError, ValueError: bad images or labels.

        Example:
            >>> from avalanche_f2ocl import F2OCLModel
            >>> model = F2OCLModel("micro_vit", prompt_length=2)
            >>> model.learn(torch.randint(0, 256, (3, 3, 32, 32), dtype=torch.uint8), ["cat", "dog", "cat"])
            >>> model.class_names
            {0: 'cat', 1: 'dog'}
        """
        self.check(images)
        ids, names = self._ids(labels)
        labels = check_labels(ids, len(images))
        with self.undo(self.optimizer) as undo:
            undo.save_attributes(self, "class_names")
            self.class_names = names
            batch = self.begin_batch(images.to(self.device), labels)
            undo.save_rows(batch.class_rows)
            self.learn_batch(batch)

    def _ids(self, labels: Any) -> tuple[Any, dict[int, str]]:
        """Class ids of labels that are names, and the names with the new ones among them."""
        if isinstance(labels, Tensor) or not any(isinstance(label, str) for label in labels):
            return labels, self.class_names
        ids = {name: class_id for class_id, name in self.class_names.items()}
        free = max(self.classes.max_id, *self.class_names, -1) + 1
        for label in labels:
            if not isinstance(label, str):
                raise TypeError(f"label {label!r} among names: labels are all class ids or all names")
            if label not in ids:
                ids[label], free = free, free + 1
        return [ids[label] for label in labels], {class_id: name for name, class_id in ids.items()}

    def _check_learned(self) -> None:
        if self.batches == 0:
            raise RuntimeError("nothing has been learned yet: call learn(images, labels) first")

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
