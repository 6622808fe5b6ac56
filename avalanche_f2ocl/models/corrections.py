"""Corrections that every model allows: names, and the removal of classes."""

from collections.abc import Iterator, Mapping
from numbers import Integral
from typing import Any

import torch

from avalanche_f2ocl.models.class_names import UnknownClass, checked_names, unknown
from avalanche_f2ocl.models.predicting import Predictor
from avalanche_f2ocl.state.row_adam import StepOptimizer, remove_row
from avalanche_f2ocl.state.rows import ClassRows, Undoable


class Corrections(Predictor):
    """Classes by name or id, counted, renamed and forgotten.

    Attributes:
        optimizer: the optimiser; None if nothing is trained.
        followers: objects outside the model whose ``forget_class(class_id, row)`` is called by :meth:`forget`.
    """

    optimizer: StepOptimizer | None = None
    followers: list[Any]

    def __init__(self) -> None:
        super().__init__()
        self._class_names: dict[int, str] = {}

    def learned_parts(self) -> Iterator[Undoable]:
        """Everything that learning changes, the optimiser aside."""
        for child in self.children():
            if child is not self.backbone:
                yield from (module for module in child.modules() if isinstance(module, Undoable))

    @property
    def class_names(self) -> dict[int, str]:
        """Names by class id, as far as they are given; they are saved. Setting a name twice raises ``ValueError``."""
        return self._class_names

    @class_names.setter
    def class_names(self, names: Mapping[int, str]) -> None:
        self._class_names = checked_names(names)

    @property
    def class_counts(self) -> dict[int, int]:
        """The number of images learned of each class id, in order of appearance.

        Example:
            >>> from avalanche_f2ocl import FrozenModel
            >>> model = FrozenModel("micro_vit")
            >>> model.learn(torch.randint(0, 256, (3, 3, 32, 32), dtype=torch.uint8), ["cat", "dog", "cat"])
            >>> {model.class_names[class_id]: images for class_id, images in model.class_counts.items()}
            {'cat': 2, 'dog': 1}
        """
        return dict(zip(self.class_ids.tolist(), self.head.used("counts").tolist(), strict=True))

    def class_id(self, which: int | str) -> int:
        """The id of a class, given its name (str) or id (int).

        Raises:
            TypeError: ``which`` is neither a str nor an int.
            KeyError: no such class has been learned.

        Example:
            >>> from avalanche_f2ocl import FrozenModel
            >>> model = FrozenModel("micro_vit")
            >>> model.learn(torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8), ["cat", "dog"])
            >>> model.class_id("dog")
            1
        """
        if isinstance(which, bool) or not isinstance(which, (str, Integral)):
            raise TypeError(f"class {which!r}: must be a name (str) or a class id (int)")
        known = self.class_ids.tolist()
        if not isinstance(which, str):
            if which not in known:
                raise UnknownClass(f"class {which} is not known: {len(known)} classes have been learned")
            return int(which)
        ids = {self.class_names[class_id]: class_id for class_id in known if class_id in self.class_names}
        if which not in ids:
            raise unknown(which, ids)
        return ids[which]

    def rename(self, which: int | str, name: str) -> None:
        """Gives a class another name, or its first one.

        Args:
            which: the class's id or name.
            name: the new name, which no other class may have.

        Raises:
            KeyError: the class is not known.
            TypeError, ValueError: the name is no string, or is empty, or another class has it.

        Example:
            >>> from avalanche_f2ocl import FrozenModel
            >>> model = FrozenModel("micro_vit")
            >>> model.learn(torch.randint(0, 256, (3, 3, 32, 32), dtype=torch.uint8), ["cat", "dgo", "cat"])
            >>> model.rename("dgo", "dog")
            >>> model.class_names
            {0: 'cat', 1: 'dog'}
        """
        if not isinstance(name, str):
            raise TypeError(f"name={name!r}: must be a str, is {type(name).__name__}")
        if not name:
            raise ValueError("name='': must not be empty")
        with self.lock:
            class_id = self.class_id(which)
            other = next((i for i, own in self.class_names.items() if own == name and i != class_id), None)
            if other is not None:
                raise ValueError(f"name={name!r}: class {other} has this name; merge makes one class of the two")
            self.class_names = self.class_names | {class_id: name}

    def forget(self, which: int | str) -> None:
        """Removes a class: its id, head rows, key and prompt, and what the optimiser remembers of them.

        The other classes keep their values, bit for bit, and their order; the logits lose a column. If the
        class comes again, it is new. When the last class is gone, ``batches`` is 0: nothing has been learned.
        Do not call this method between the beginning and the end of a mini-batch.

        What other parts learned from the class's images stays, since it cannot be separated: the prompts of
        other classes were trained against these images and, if elected for a mixed mini-batch, on them; the
        linear rows of other classes were pushed away from them; prompts shared by all classes (L2P, DualPrompt)
        and their moments were trained on them. If you still have the images,
        :meth:`avalanche_f2ocl.models.unlearning.Unlearning.unlearn` takes out more.

        Args:
            which: the class's id or name.

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
        with self.lock:
            self._forget(self.class_id(which))

    def _row(self, class_id: int) -> int:
        return int(self.classes.rows(torch.tensor([class_id])))

    def _forget(self, class_id: int) -> None:
        row = self._row(class_id)
        for part in self.learned_parts():
            if isinstance(part, ClassRows):
                part.remove_row(row)
                if self.optimizer is not None:
                    for parameter in part.parameters():
                        remove_row(self.optimizer, parameter, row)
        self._class_names.pop(class_id, None)
        for follower in self.followers:
            follower.forget_class(class_id, row)
        if len(self.classes) == 0:
            self.batches = 0
