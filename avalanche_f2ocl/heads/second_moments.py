"""Class sums and the second moment over all classes: what LDA and ridge regression are solved from."""

from abc import abstractmethod

import torch
from torch import Tensor
from torch.nn import functional as F

from avalanche_f2ocl.state.class_means import ClassMeans, mask_unseen
from avalanche_f2ocl.state.distinct import DistinctCount, image_codes


class SecondMomentHead(ClassMeans):
    """A linear classifier solved from sums over the stream, when a prediction is asked for after an update.

    Sums are float64, so what is solved is that of the full data, whatever the order and the cut into mini-batches.
    Nothing is kept per sample; memory is ``8 P**2`` bytes and 64 KiB, and ``8 P`` bytes a class, for P features.

    An image that comes again adds to the sums like any other, but is no new evidence of how far they can be trusted:
    what is chosen from the sums goes by the number of different images.

    A class that is forgotten takes the part of its mean along. What its samples scattered around it stays in the
    moment, where it cannot be told from the other classes'.

    Args:
        dim: length F of the vectors.
        width: P, where features are made of the vectors; default, the vectors are the features.

    Attributes:
        moment: sum of ``x x^T`` over the features x of all samples, ``(P, P)`` float64.
        total: samples in it, int64.
        distinct: counts the different images among them.
    """

    moment: Tensor
    total: Tensor
    feature_sums: Tensor

    def __init__(self, dim: int, width: int | None = None) -> None:
        super().__init__(dim)
        if width is not None:
            self.register_rows("feature_sums", width, dtype=torch.float64)
        self.feature_sums_name = "sums" if width is None else "feature_sums"
        width = dim if width is None else width
        self.register_buffer("moment", torch.zeros(width, width, dtype=torch.float64))
        self.register_buffer("total", torch.zeros((), dtype=torch.int64))
        self.distinct = DistinctCount()
        self._waiting: list[Tensor] | None = None
        self._solution: tuple[Tensor, Tensor] | None = None

    def features(self, vectors: Tensor) -> Tensor:
        """``(B, F)`` to ``(B, P)`` float64."""
        return vectors.double()

    @abstractmethod
    def solve(self, moment: Tensor, total: Tensor, distinct: Tensor) -> tuple[Tensor, Tensor]:
        """Weights ``(C, P)`` and biases ``(C,)``, float64, from class sums, moment, its samples and distinct images."""

    @torch.no_grad()
    def update(self, vectors: Tensor, rows: Tensor, images: Tensor | None = None) -> None:
        """Adds ``vectors (B, F)`` of the classes ``rows (B,)`` int64.

        Args:
            images: ``(B, C, H, W)``, what the vectors are of, to find copies by; None if there are none.
        """
        super().update(vectors, rows)
        if images is not None:
            self.distinct.add(image_codes(images))
        features = self.features(vectors)
        if self.feature_sums_name != "sums":
            self.feature_sums.index_add_(0, rows, features)
        if self._waiting is None:
            self._add(self.moment, self.total, features)
        else:
            self._waiting.append(features)
        self._solution = None

    @staticmethod
    def _add(moment: Tensor, total: Tensor, features: Tensor) -> None:
        moment.addmm_(features.T, features)
        total += len(features)

    def logits(self, vectors: Tensor) -> Tensor:
        """Scores of ``vectors (B, F)`` for the classes so far: ``(B, C)`` float32."""
        if self._solution is None:
            moment, total = self.moment, self.total
            if self._waiting:
                moment, total = moment.clone(), total.clone()
                self._add(moment, total, torch.cat(self._waiting))
            distinct = (total - self.distinct.total() + self.distinct.estimate()).clamp(min=1)
            # How often an image has come, in tenths: the estimate is not exact, and a stream without copies is common.
            times = (10 * total / distinct).round().clamp(min=10) / 10
            self._solution = self.solve(moment, total.clamp(min=1), (total / times).clamp(min=1))
        weight, bias = self._solution
        counts = self.used("counts")
        scores = (self.features(vectors) @ weight.T + bias).float()
        # Classes that have come since it was solved have no sample yet.
        return mask_unseen(F.pad(scores, (0, len(counts) - len(weight))), counts)

    def moment_without(self, rows: Tensor) -> Tensor:
        """The moment less the parts of the means of ``rows (R,)``: all there is of a class with one sample."""
        sums = getattr(self, self.feature_sums_name)[rows]
        return self.moment - sums.T @ (sums / self.counts[rows].clamp(min=1).unsqueeze(1))

    def remove_row(self, row: int) -> None:
        self.moment = self.moment_without(torch.tensor([row], device=self.moment.device))
        super().remove_row(row)
        if self.num_rows == 0:
            self.moment.zero_()
            self.total.zero_()
            self.distinct.clear()
        self._solution = None

    # The moment is too large to be noted at every step: inside an Undo block what it gains waits for the end.
    def begin_block(self) -> None:
        self._waiting = []

    def end_block(self, keep: bool) -> None:
        waiting, self._waiting = self._waiting, None
        for features in (waiting or ()) if keep else ():
            self._add(self.moment, self.total, features)
        if not keep:
            self._solution = None

    def _load_from_state_dict(self, *args):
        super()._load_from_state_dict(*args)
        self._solution = None

    def _apply(self, *args, **kwargs):
        self._solution = None
        return super()._apply(*args, **kwargs)
