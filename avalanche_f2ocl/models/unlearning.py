"""What can be put right of a model whose head sums embeddings: single images, and two classes that are one."""

from abc import abstractmethod
from collections import Counter
from typing import Any

import torch
from torch import Tensor

from avalanche_f2ocl.checks import check_labels
from avalanche_f2ocl.models.base import BaseModel, Labels
from avalanche_f2ocl.models.class_names import ids_of, one_each
from avalanche_f2ocl.models.inputs import Images
from avalanche_f2ocl.state.rows import ClassRows


class Unlearning(BaseModel):
    """Takes images out again, gives them other labels, and makes one class of two."""

    @abstractmethod
    def take_out(self, batch: Any) -> None:
        """Takes a mini-batch that was learned out of everything that is a sum."""

    def unlearn(self, images: Images, labels: Labels | None = None, *, label: int | str | None = None) -> None:
        """Takes images out that were learned with these labels. If it raises, the model is unchanged.

        Class means, second moments, keys that are means, and what they were judged by (how many different images there
        were, which of two heads was right) are afterwards as if the images had never been seen, up to rounding. A
        class without images is forgotten.

        What was computed under a prompt is computed again under the prompt as it is now: that of the image's class, or
        the one for all. So those sums are exact where it has not moved since, as in
        :meth:`avalanche_f2ocl.F2OCLModel.best` once its prompt has stopped. Else something is left, and ridge
        regression does not fit it, see :func:`avalanche_f2ocl.heads.regression.supported`. Prompts, their optimiser's
        moments, keys that take gradient steps, and the number of mini-batches stay as they are.

        Args:
            images, labels, label: as they were given to :meth:`learn`.

        Raises:
            KeyError: a class is not known.
            TypeError: the head cannot take samples out, as SLDA, which depends on their order.
            TypeError, ValueError: bad images or labels; more images of a class than it has learned; images that have
                not been learned, where the head counts different ones (LDA, ridge) and can tell.

        Example:
            >>> from avalanche_f2ocl import FrozenModel
            >>> model = FrozenModel("micro_vit")
            >>> images = torch.randint(0, 256, (3, 3, 32, 32), dtype=torch.uint8)
            >>> model.learn(images, ["cat", "dog", "cat"])
            >>> model.unlearn(images[1:], ["dog", "cat"])
            >>> model.class_names, model.class_counts
            ({0: 'cat'}, {0: 1})
        """
        batch = self.batch_of(images)
        with self.lock:
            labels = self._learned_ids(one_each(labels, label, len(batch)), len(batch))
            with torch.inference_mode(False), torch.no_grad(), self.undo(self.optimizer) as undo:
                self._unlearn(batch.to(self.device), labels, undo)
            self._forget_empty(labels)

    def relabel(self, images: Images, labels: Labels, new_labels: Labels) -> None:
        """Gives learned images other labels: :meth:`unlearn`, then :meth:`learn`. If it raises, nothing has changed.

        Args:
            images: as they were given to :meth:`learn`.
            labels: that they were learned with, one each or one for all.
            new_labels: that they should have had, likewise; new classes are fine.

        Raises:
            KeyError, TypeError, ValueError: as :meth:`unlearn` and :meth:`learn`.

        Example:
            >>> from avalanche_f2ocl import FrozenModel
            >>> model = FrozenModel("micro_vit")
            >>> images = torch.randint(0, 256, (3, 3, 32, 32), dtype=torch.uint8)
            >>> model.learn(images, "cat")
            >>> model.relabel(images[2:], "cat", "dog")
            >>> model.class_names, model.class_counts
            ({0: 'cat', 1: 'dog'}, {0: 2, 1: 1})
        """
        batch = self.batch_of(images)
        with self.lock:
            old = self._learned_ids(one_each(labels, None, len(batch)), len(batch))
            with torch.inference_mode(False), torch.enable_grad(), self.undo(self.optimizer) as undo:
                self._unlearn(batch.to(self.device), old, undo)
                self._learn(batch, one_each(new_labels, None, len(batch)), undo)
            self._forget_empty(old)

    def merge(self, which: int | str, into: int | str) -> None:
        """Makes two classes one, which keeps the id, name and prompt of ``into``.

        Its sums are what they would be, had all images been learned as ``into``: for class means, LDA and ridge
        regression nothing is lost. Keys that are means are added up; others stay those of ``into``.

        Args:
            which: the class's id or name, which is gone afterwards.
            into: the other one's.

        Raises:
            KeyError: a class is not known.
            TypeError: a head of one's own does not say which of its tensors are sums.
            ValueError: both are the same class.

        Example:
            >>> from avalanche_f2ocl import FrozenModel
            >>> model = FrozenModel("micro_vit")
            >>> model.learn(torch.randint(0, 256, (3, 3, 32, 32), dtype=torch.uint8), ["cat", "dog", "cats"])
            >>> model.merge("cats", "cat")
            >>> model.class_names, model.class_counts
            ({0: 'cat', 1: 'dog'}, {0: 2, 1: 1})
        """
        with self.lock:
            gone, kept = self.class_id(which), self.class_id(into)
            if gone == kept:
                raise ValueError(f"{which!r} and {into!r} are one class already")
            for part in self.head.modules() if isinstance(self.head, ClassRows) else ():
                if isinstance(part, ClassRows) and (others := set(part.row_names) - set(part.sum_names)):
                    raise TypeError(f"{type(part).__name__} registers {', '.join(sorted(others))} without summed=True")
            for part in self.learned_parts():
                if isinstance(part, ClassRows):
                    part.merge_row(self._row(gone), self._row(kept))
            self._forget(gone)

    def _learned_ids(self, labels: Any, count: int) -> Tensor:
        """Ids ``(B,)`` int64 on the CPU of labels, of whose classes as many images have been learned."""
        known = {class_id: name for class_id, name in self.class_names.items() if class_id in self.class_counts}
        ids = check_labels(ids_of(labels, known, None)[0], count)
        for class_id, images in Counter(ids.tolist()).items():
            learned = self.class_counts[self.class_id(class_id)]
            if images > learned:
                name = self.class_names.get(class_id, class_id)
                raise ValueError(f"{images} images of class {name!r} cannot be taken out: it has learned {learned}")
        return ids

    def _unlearn(self, images: Tensor, ids: Tensor, undo: Any) -> None:
        for part in self.head.modules() if isinstance(self.head, ClassRows) else ():
            if isinstance(part, ClassRows) and not _undoes_its_update(type(part)):
                raise TypeError(f"{type(part).__name__} has an update() and no remove() that takes the same out again")
        batch = self.begin_batch(images, ids)
        undo.save_rows(batch.class_rows)
        with self.backbone.forgetting_passes():
            self.take_out(batch)

    def _forget_empty(self, ids: Tensor) -> None:
        counts = self.class_counts
        for class_id in set(ids.tolist()):
            if counts[class_id] == 0:
                self._forget(class_id)


def _undoes_its_update(cls: type) -> bool:
    """Whether no class has an ``update`` that a ``remove`` of a class above it does not know."""
    owners = {name: next((c for c in cls.__mro__ if name in vars(c)), object) for name in ("update", "remove")}
    return issubclass(owners["remove"], owners["update"])
