"""What the page for teaching a model does, without the page itself."""

import hashlib
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import RLock
from typing import NamedTuple

import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms.functional import pil_to_tensor

from avalanche_f2ocl.datasets.reading import picture, read_image
from avalanche_f2ocl.image_fit import ImageFit
from avalanche_f2ocl.models.learned import Learned
from avalanche_f2ocl.models.model_file import read_model_file, restore
from avalanche_f2ocl.models.saving import SavedModel

Picture = Image.Image | str | Path
"""A picture that is open already, or the path of a file."""
MINI_BATCH = 2
"""Pictures learned at a time: pictures of known classes are judged first, which shows how known pictures score."""
STEPS = 20
"""Number of steps that can be undone."""


class Answer(NamedTuple):
    """The model's answer about a picture.

    Attributes:
        classes: names of classes and their probabilities, likeliest first.
        known: False if the picture is none of these; None if too little has been learned to tell.
    """

    classes: list[tuple[str, float]]
    known: bool | None


class Teacher:
    """Teaches a model with pictures and undoes lessons; several threads may use it.

    It keeps only the pictures of lessons that can be undone, and only as long as this object exists.

    Args:
        model: the model, which must not be used elsewhere.
        path: path of the file that the model is saved to.
        backbone: whether the file also holds the frozen weights.

    Attributes:
        saved: whether the file holds everything learned.

    Example:
        >>> from avalanche_f2ocl import FrozenModel
        >>> teacher = Teacher(FrozenModel("micro_vit"), Path("learned.safetensors"))
        >>> teacher.teach([Image.new("RGB", (40, 30), "red")], "red")
        '1 picture learned as “red”.'
        >>> teacher.ask([Image.new("RGB", (20, 20), "red")])[0].classes
        [('red', 1.0)]
        >>> teacher.undo()
        'Undone: 1 picture learned as “red”.'
    """

    def __init__(self, model: SavedModel, path: Path, backbone: bool = False) -> None:
        self.model, self.path, self.backbone, self.saved = model, path, backbone, True
        self._steps: deque[tuple[str, Callable[[], object], dict[str, str]]] = deque(maxlen=STEPS)
        self._taught: dict[str, str] = {}  # names by SHA-256 of the pixels
        self._lock, self._folder, self._numbers = RLock(), TemporaryDirectory(prefix="f2ocl-"), count()

    @property
    def counts(self) -> dict[str, int]:
        """Number of pictures learned by name of the class, in order of appearance."""
        with self._lock:
            return {self._name(class_id): pictures for class_id, pictures in self.model.class_counts.items()}

    @property
    def can_undo(self) -> bool:
        return bool(self._steps)

    def ask(self, pictures: Sequence[Picture], reject: float = 0.05, topk: int = 5) -> list[Answer]:
        """The model's answers about pictures.

        Args:
            pictures: pictures of any size and mode.
            reject: share of the pictures of known classes that may be rejected, see
                :meth:`avalanche_f2ocl.models.predicting.Predictor.answers`.
            topk: number of classes for each picture.

        Raises:
            RuntimeError: nothing has been learned yet.
            ValueError: a picture cannot be read.
        """
        if not pictures:
            return []
        with self._lock:
            pixels, known = self._pixels(pictures), [None] * len(pictures)
            ids, shares = self.model.topk(pixels, topk)
            with suppress(RuntimeError):  # raised if too little has been learned to tell
                known = self.model.answers(pixels, topk, reject).known.tolist()
            return [
                Answer([(self._name(i), share) for i, share in zip(own, of_own, strict=True)], is_known)
                for own, of_own, is_known in zip(ids.tolist(), shares.tolist(), known, strict=True)
            ]

    def teach(self, pictures: Sequence[Picture], name: str) -> str:
        """Learns pictures as a class, new or known; pictures taught as another class before are corrected.

        Args:
            pictures: pictures of any size and mode; those taught as this class before are skipped.
            name: name of the class.

        Returns:
            What was done, in a sentence.

        Raises:
            ValueError: there is no picture or no name, or a picture cannot be read.
        """
        name = _checked(name)
        if not pictures:
            raise ValueError("There is no picture to learn.")
        with self._lock:
            pixels, before = self._pixels(pictures), dict(self._taught)
            keys = [hashlib.sha256(one.numpy().tobytes()).hexdigest() for one in pixels]
            first = [i for i, key in enumerate(keys) if key not in keys[:i] and before.get(key) != name]
            wrong = [i for i in first if keys[i] in before]
            new = [i for i in first if keys[i] not in before]
            if not first:
                return f"Nothing new: learned as {_quoted(name)} before."
            done: list[Callable[[], None]] = []
            try:
                for old in dict.fromkeys(before[keys[i]] for i in wrong):
                    part = pixels[[i for i in wrong if before[keys[i]] == old]]
                    self.model.relabel(part, old, name)
                    done.append(partial(self.model.relabel, part, name, old))
                for part in pixels[new].split(MINI_BATCH) if new else ():
                    self.model.learn(part, name)
                    done.append(partial(self.model.unlearn, part, name))
            except BaseException:
                _call_backwards(done)
                raise
            self._taught |= {keys[i]: name for i in first}
            parts = [f"{_pictures(len(new))} learned as {_quoted(name)}"] * bool(new)
            parts += [f"{_pictures(len(wrong))} corrected to {_quoted(name)}"] * bool(wrong)
            return self._done(f"{', '.join(parts)}.", partial(_call_backwards, done), before)

    def rename(self, old: str, new: str) -> str:
        """Gives a class another name.

        Raises:
            KeyError: the class is not known.
            ValueError: the name is empty, or another class has it.
        """
        new = _checked(new)
        with self._lock:
            before = dict(self._taught)
            self.model.rename(old, new)
            self._taught = {key: new if name == old else name for key, name in before.items()}
            told = f"{_quoted(old)} is now {_quoted(new)}."
            return self._done(told, partial(self.model.rename, new, old), before)

    def forget(self, name: str) -> str:
        """Forgets a class. It raises ``KeyError`` if the class is not known."""
        with self._lock:
            before = dict(self._taught)
            file = Path(self._folder.name) / f"{next(self._numbers)}.safetensors"
            self.model.save(file)
            self.model.forget(name)
            self._taught = {key: own for key, own in before.items() if own != name}
            return self._done(f"{_quoted(name)} is forgotten.", partial(self._restore, file), before)

    def undo(self) -> str:
        """Undoes the last step and says which. It raises ``RuntimeError`` if there is none."""
        with self._lock:
            if not self._steps:
                raise RuntimeError("There is nothing to undo.")
            told, take_back, self._taught = self._steps.pop()
            take_back()
            self.saved = False
            return f"Undone: {told}"

    def save(self) -> str:
        """Writes the file, whole or not at all. It raises ``OSError`` if the file cannot be written."""
        with self._lock:
            if self.model.batches:
                self.model.head.prepare()  # so that nobody who opens the file has to wait
            self.model.save(self.path, backbone=self.backbone)
            self.saved = True
            return f"Saved: {self.path}"

    def _name(self, class_id: int) -> str:
        return self.model.class_names.get(class_id, str(class_id))

    def _pixels(self, pictures: Sequence[Picture]) -> Tensor:
        return torch.stack([_read(one, self.model.backbone.image_fit) for one in pictures])

    def _done(self, told: str, take_back: Callable[[], object], taught_before: dict[str, str]) -> str:
        self._steps.append((told, take_back, taught_before))
        self.saved = False
        return told

    def _restore(self, file: Path) -> None:
        restore(Learned(self.model, self.model.saved_as, self.model.optimizer), *read_model_file(file), file)
        file.unlink()


def _read(one: Picture, fit: ImageFit) -> Tensor:
    """Pixels ``(3, S, S)`` uint8."""
    try:
        if isinstance(one, Image.Image):
            return pil_to_tensor(picture(one, fit))
        with open(one, "rb") as file:
            return pil_to_tensor(read_image(file, fit))
    except Exception as error:  # a damaged file can raise anything
        raise ValueError(f"A picture cannot be read: {error}") from error


def _checked(name: str) -> str:
    name = " ".join(name.split())
    if not name:
        raise ValueError("Give the class a name.")
    return name


def _call_backwards(steps: Sequence[Callable[[], object]]) -> None:
    for step in reversed(steps):
        step()


def _pictures(number: int) -> str:
    return "1 picture" if number == 1 else f"{number} pictures"


def _quoted(name: str) -> str:
    return f"“{name}”"
