"""Corrections of a model whose head sums embeddings: single images, and two classes that should be one."""

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
    """Takes images out again, gives them other labels, and makes two classes one."""

    @abstractmethod
    def take_out(self, batch: Any) -> None:
        """Subtracts a learned mini-batch from all sums."""

    def unlearn(self, images: Images, labels: Labels | None = None, *, label: int | str | None = None) -> None:
        """Takes out images that were learned with these labels. If it raises, the model is unchanged.

        Class means, second moments, keys that are means, and the evidence they were judged by (how many different
        images there were, which of two heads was right) are afterwards as if the images had never been seen, up to
        rounding. A class without images is forgotten.

        Embeddings under a prompt are computed again under the present prompt: that of the image's class, or the one for
        all classes. So these sums are exact if the prompt has not moved since, as in
        :meth:`avalanche_f2ocl.F2OCLModel.best` once its prompt has stopped. Otherwise a remainder stays in the sums,
        and ridge regression does not fit it, see :func:`avalanche_f2ocl.heads.regression.supported`. Prompts, their
        optimiser's moments, keys that take gradient steps, and the number of mini-batches stay as they are.

        Args:
            images: the images, as they were given to :meth:`learn`.
            labels: the labels that the images were learned with, one for each image or one for all of them.
            label: one label for all images, in place of ``labels``.

        Raises:
            KeyError: a class is not known.
            TypeError: the head cannot take samples out, as is the case for SLDA, which depends on their order.
            TypeError, ValueError: the images or labels are not allowed, there are more images of a class than it has
                learned, or the images have not been learned and the head can tell, because it counts different images
                (LDA, ridge).

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
            images: the images, as they were given to :meth:`learn`.
            labels: the labels that the images were learned with, one for each image or one for all of them.
            new_labels: the right labels, one for each image or one for all of them; new classes are allowed.

        Raises:
            KeyError: a class of ``labels`` is not known.
            TypeError, ValueError: the images cannot be unlearned or learned with these labels.

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

        Its sums are what they would be if all images had been learned as ``into``: for class means, LDA and ridge
        regression nothing is lost. Keys that are means become the mean over both classes; other keys stay those of
        ``into``.

        Args:
            which: id or name of the class that goes.
            into: id or name of the class that stays.

        Raises:
            KeyError: a class is not known.
            TypeError: a user's own head does not say which of its tensors are sums.
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
                raise ValueError(f"{which!r} and {into!r} are the same class")
            for part in self.head.modules() if isinstance(self.head, ClassRows) else ():
                if isinstance(part, ClassRows) and (others := set(part.row_names) - set(part.sum_names)):
                    raise TypeError(f"{type(part).__name__} registers {', '.join(sorted(others))} without summed=True")
            for part in self.learned_parts():
                if isinstance(part, ClassRows):
                    part.merge_row(self._row(gone), self._row(kept))
            self._forget(gone)

    def _learned_ids(self, labels: Any, count: int) -> Tensor:
        """Ids ``(B,)`` int64 on the CPU of labels, after a check that their classes have learned so many images."""
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
    """Whether ``remove`` is defined at least as far down the class hierarchy as ``update``, so that it undoes it."""
    owners = {name: next((c for c in cls.__mro__ if name in vars(c)), object) for name in ("update", "remove")}
    return issubclass(owners["remove"], owners["update"])
