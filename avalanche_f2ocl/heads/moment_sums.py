"""Class sums and the second moment over all classes, to which samples are added and from which they are taken."""

from typing import ClassVar

import torch
from torch import Tensor

from avalanche_f2ocl.heads.projection import RandomProjection
from avalanche_f2ocl.state.class_means import ClassMeans
from avalanche_f2ocl.state.distinct import DistinctCount, image_codes
from avalanche_f2ocl.state.rows import add_to_rows


class MomentSums(ClassMeans):
    """Float64 sums over the stream, from which the same solution follows as from the full data.

    Neither the order of the samples nor their division into mini-batches matters. Nothing is kept per sample; memory is
    ``8 P**2`` bytes and 64 KiB, and ``8 P`` bytes a class, for P features.

    An image that comes again adds to the sums like any other, but it is no new evidence of how reliable the sums are.
    Choices made from the sums, such as that of a penalty, therefore use the number of different images.

    When a class is forgotten, the part of its mean is taken out of the moment. The scatter of its samples around the
    mean stays in the moment, where it cannot be separated from that of other classes.

    Args:
        dim: length F of the vectors.
        projection: makes P features of the vectors; None if the vectors are the features.

    Attributes:
        moment: sum of ``x x^T`` over the features x of all samples, ``(P, P)`` float64.
        total: number of samples in the moment, int64.
        distinct: estimates the number of different images among them.
        projection: the projection, or None.
    """

    moment: Tensor
    total: Tensor
    feature_sums: Tensor
    removes: ClassVar[bool] = True
    """Whether samples can be taken out again, which is not possible if the head depends on their order."""

    def __init__(self, dim: int, projection: RandomProjection | None = None) -> None:
        super().__init__(dim)
        self.projection = projection
        width = dim if projection is None else projection.matrix.shape[1]
        if projection is not None:
            self.register_rows("feature_sums", width, dtype=torch.float64, summed=True)
        self.feature_sums_name = "sums" if projection is None else "feature_sums"
        self.register_buffer("moment", torch.zeros(width, width, dtype=torch.float64))
        self.register_buffer("total", torch.zeros((), dtype=torch.int64))
        self.distinct = DistinctCount()
        self._waiting: list[Tensor] | None = None
        self._waiting_out: list[Tensor] = []

    def features(self, vectors: Tensor) -> Tensor:
        """The features of vectors: ``(B, F)`` to ``(B, P)`` float64."""
        return (vectors if self.projection is None else self.projection(vectors)).double()

    def terms(self, features: Tensor, rows: Tensor) -> Tensor:
        """The terms ``(B, P)`` whose products the moment sums; computed before ``features (B, P)`` are added."""
        return features

    def add_samples(
        self, vectors: Tensor, rows: Tensor, images: Tensor | None = None, codes: Tensor | None = None
    ) -> Tensor:
        """Adds ``vectors (B, F)`` of the classes ``rows (B,)`` int64; returns their features ``(B, P)``.

        Args:
            vectors: ``(B, F)``.
            rows: rows of the samples' classes, ``(B,)`` int64.
            images: the images that the vectors were made from, ``(B, C, H, W)``, by which copies are found; None if
                there are none.
            codes: codes of the images, if they are known, see :func:`avalanche_f2ocl.state.distinct.image_codes`.
        """
        self.outdated()  # first, so that nothing stale stays if the rest fails
        if self.projection is not None:
            self.projection.see(vectors)
        features = self.features(vectors)
        terms = self.terms(features, rows)
        self.add_sums(features, rows)
        super().update(vectors, rows)
        if codes is None and images is not None:
            codes = image_codes(images)
        if codes is not None:
            self.distinct.add(codes)
        if self._waiting is None:
            self._add(terms)
        else:
            self._waiting.append(terms)
        return features

    def outdated(self) -> None:
        """Called when the sums change: drops everything that was made from them."""

    def remove_samples(
        self, vectors: Tensor, rows: Tensor, images: Tensor | None = None, codes: Tensor | None = None
    ) -> None:
        """Takes out a mini-batch that :meth:`add_samples` added, with the same arguments.

        Raises:
            TypeError: the head depends on the order of its samples.
            ValueError: the images are given, and not all of them have been learned; nothing has changed.
        """
        if not self.removes:
            raise TypeError(f"{type(self).__name__} depends on the order of its samples: none can be taken out again")
        codes = image_codes(images) if codes is None and images is not None else codes
        if codes is not None and self.distinct.total() == self.total_now():  # version 0.1 did not count images
            self.distinct.remove(codes)
        self.outdated()
        features = self.features(vectors)
        if self.projection is not None:
            add_to_rows(self.feature_sums, rows, -features)
        super().remove(vectors, rows)
        if self._waiting is None:
            self._take_out(features)
        else:
            self._waiting_out.append(features)

    def _take_out(self, features: Tensor) -> None:
        self.moment.addmm_(features.T, features, alpha=-1)
        self.total -= len(features)

    def add_sums(self, features: Tensor, rows: Tensor) -> None:
        """Adds ``features (B, P)`` to the further sums of the classes ``rows (B,)``, besides those of the vectors."""
        if self.projection is not None:
            add_to_rows(self.feature_sums, rows, features)

    def _add(self, terms: Tensor) -> None:
        self.moment.addmm_(terms.T, terms)
        self.total += len(terms)

    def moment_now(self) -> Tensor:
        """The moment, including samples that wait in an undo block; do not change it in place."""
        moment = self.moment
        for terms, sign in ((self._waiting or [], 1), (self._waiting_out, -1)):
            if terms:
                together = torch.cat(terms)
                moment = torch.addmm(moment, together.T, together, alpha=sign)
        return moment

    def total_now(self) -> Tensor:
        """The number of samples, including those that wait in an undo block, int64."""
        return self.total + sum(map(len, self._waiting or ())) - sum(map(len, self._waiting_out))

    def problem(self) -> tuple[Tensor, Tensor, Tensor]:
        """The moment and its numbers of samples and of different images, which a head is solved from."""
        total = self.total_now()
        distinct = (total - self.distinct.total() + self.distinct.estimate()).clamp(min=1)
        # How often an image has come, in tenths: the estimate is not exact, and a stream without copies is common.
        times = (10 * total / distinct).round().clamp(min=10) / 10
        total = total.clamp(min=1)
        return self.moment_now(), total, (total / times).clamp(min=1)

    def moments(self) -> dict[str, tuple[str, str]]:
        """Names of the moments, and for each moment the names of its sums and counts by class."""
        return {"moment": (self.feature_sums_name, "counts")}

    def moments_without(self, rows: Tensor) -> dict[str, Tensor]:
        """The moments without the parts of the means of ``rows (R,)``, which are all of a class with one sample."""
        result = {}
        for name, (sums_name, counts_name) in self.moments().items():
            sums, counts = getattr(self, sums_name)[rows], getattr(self, counts_name)[rows]
            result[name] = getattr(self, name) - sums.T @ (sums / counts.clamp(min=1).unsqueeze(1))
        return result

    def remove_row(self, row: int) -> None:
        for name, moment in self.moments_without(torch.tensor([row], device=self.moment.device)).items():
            setattr(self, name, moment)
        super().remove_row(row)
        if self.num_rows == 0:
            self.clear()
        self.outdated()

    def clear(self) -> None:
        """Resets the sums, as if nothing had been learned."""
        for name in self.moments():
            getattr(self, name).zero_()
        self.total.zero_()
        self.distinct.clear()
        if self.projection is not None:
            self.projection.clear()

    # The moment is too large to be noted at every step, so inside an Undo block additions wait until the end.
    def begin_block(self) -> None:
        self._waiting = []

    def end_block(self, keep: bool) -> None:
        waiting, self._waiting = self._waiting, None
        out, self._waiting_out = self._waiting_out, []
        if keep:
            for terms in waiting or ():
                self._add(terms)
            for features in out:
                self._take_out(features)
        if not keep:
            self.outdated()
