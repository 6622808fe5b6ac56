"""Class sums and the second moment over all classes: what LDA and ridge regression are solved from."""

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from avalanche_f2ocl.heads.projection import RandomProjection
from avalanche_f2ocl.heads.solution import Settings, Solution, solution_of, solution_problem, take_solution
from avalanche_f2ocl.state.class_means import ClassMeans, mask_unseen
from avalanche_f2ocl.state.distinct import DistinctCount, image_codes
from avalanche_f2ocl.state.rows import add_to_rows, move_only


class SecondMomentHead(ClassMeans):
    """A linear classifier solved from sums over the stream, when a prediction is asked for after an update.

    Sums are float64, so what is solved is that of the full data, whatever the order and the cut into mini-batches.
    A solution that is current goes with the ``state_dict``: what is loaded with one predicts at once.
    Nothing is kept per sample; memory is ``8 P**2`` bytes and 64 KiB, and ``8 P`` bytes a class, for P features.

    An image that comes again adds to the sums like any other, but is no new evidence of how far they can be trusted:
    what is chosen from the sums goes by the number of different images.

    A class that is forgotten takes the part of its mean along. What its samples scattered around it stays in the
    moment, where it cannot be told from the other classes'.

    Args:
        dim: length F of the vectors.
        projection: makes P features of the vectors; None, the vectors are the features.

    Attributes:
        moment: sum of ``x x^T`` over the features x of all samples, ``(P, P)`` float64.
        total: samples in it, int64.
        distinct: counts the different images among them.
        projection: the same.
    """

    moment: Tensor
    total: Tensor
    feature_sums: Tensor
    FACTS = 0
    """Numbers that a solution has beside its tensors."""
    at_once = False
    count_power = 2
    hold_growth = 1.1
    removes: ClassVar[bool] = True
    """Whether samples can be taken out again: not where it depends on their order."""

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
        self._solution: Solution | None = None

    def features(self, vectors: Tensor) -> Tensor:
        """``(B, F)`` to ``(B, P)`` float64."""
        return (vectors if self.projection is None else self.projection(vectors)).double()

    def terms(self, features: Tensor, rows: Tensor) -> Tensor:
        """Whose products the moment sums, ``(B, P)``; asked for before the sums know of ``features (B, P)``."""
        return features

    @abstractmethod
    def settings(self) -> Settings:
        """What is solved for: a saved solution is of use to a head of the same settings only."""

    @abstractmethod
    def solve(self, moment: Tensor, total: Tensor, distinct: Tensor) -> Solution:
        """From class sums, moment, its samples and distinct images."""

    def advance(self, solution: Solution, features: Tensor, rows: Tensor) -> Solution | None:
        """The solution with ``features (B, P)`` of classes ``rows (B,)``, which are in the sums; None to solve anew."""
        return None

    @torch.no_grad()
    def update(
        self, vectors: Tensor, rows: Tensor, images: Tensor | None = None, codes: Tensor | None = None
    ) -> None:
        """Adds ``vectors (B, F)`` of the classes ``rows (B,)`` int64.

        Args:
            images: ``(B, C, H, W)``, what the vectors are of, to find copies by; None if there are none.
            codes: of the images, where they are known, see :func:`avalanche_f2ocl.state.distinct.image_codes`.
        """
        solution, self._solution = self._solution, None  # whatever fails, no stale one stays
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
        if solution is not None:
            with torch.inference_mode(False), torch.no_grad():
                self._solution = self.advance(solution, features, rows)

    @torch.no_grad()
    def remove(
        self, vectors: Tensor, rows: Tensor, images: Tensor | None = None, codes: Tensor | None = None
    ) -> None:
        """Takes a mini-batch that :meth:`update` added out again; arguments as there.

        Raises:
            TypeError: the head depends on the order of its samples.
            ValueError: the images are known, and not all of them have been learned; nothing has changed.
        """
        if not self.removes:
            raise TypeError(f"{type(self).__name__} depends on the order of its samples: none can be taken out again")
        codes = image_codes(images) if codes is None and images is not None else codes
        if codes is not None and self.distinct.total() == self.total_now():  # files of version 0.1 have not counted
            self.distinct.remove(codes)
        self._solution = None
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
        """Adds ``features (B, P)`` to the sums of the classes ``rows (B,)`` that they have beside the vectors' own."""
        if self.projection is not None:
            add_to_rows(self.feature_sums, rows, features)

    def _add(self, terms: Tensor) -> None:
        self.moment.addmm_(terms.T, terms)
        self.total += len(terms)

    def moment_now(self) -> Tensor:
        """The moment with what waits in a block; not to be changed."""
        moment = self.moment
        for terms, sign in ((self._waiting or [], 1), (self._waiting_out, -1)):
            if terms:
                together = torch.cat(terms)
                moment = torch.addmm(moment, together.T, together, alpha=sign)
        return moment

    def total_now(self) -> Tensor:
        """The samples with what waits in a block, int64."""
        return self.total + sum(map(len, self._waiting or ())) - sum(map(len, self._waiting_out))

    def solution(self) -> Solution:
        """Of what has been learned so far; solved for if it is not at hand."""
        if self._solution is None:
            self._solution = self.solved()
        return self._solution

    def solved(self) -> Solution:
        """Of what has been learned so far, solved for now."""
        return self.solve(*self.problem())

    def problem(self) -> tuple[Tensor, Tensor, Tensor]:
        """The moment, its samples and distinct images, as :meth:`solve` takes them."""
        total = self.total_now()
        distinct = (total - self.distinct.total() + self.distinct.estimate()).clamp(min=1)
        # How often an image has come, in tenths: the estimate is not exact, and a stream without copies is common.
        times = (10 * total / distinct).round().clamp(min=10) / 10
        total = total.clamp(min=1)
        return self.moment_now(), total, (total / times).clamp(min=1)

    @property
    def linear_width(self) -> int:
        return len(self.moment)

    def linear(self) -> tuple[Tensor, Tensor]:
        """As of :class:`avalanche_f2ocl.heads.head.Linear`; a solution that is at hand is neither used nor changed."""
        return self.solved().linear()

    @torch.no_grad()
    def prepare(self) -> None:
        """Solves now what the next prediction would else solve first."""
        self.solution()

    def logits(self, vectors: Tensor) -> Tensor:
        """Scores of ``vectors (B, F)`` for the classes so far: ``(B, C)`` float32."""
        scores, counts = self.solution().outputs(self.features(vectors)).float(), self.used("counts")
        # Classes that have come since it was solved have no sample yet.
        return mask_unseen(F.pad(scores, (0, len(counts) - scores.shape[1])), counts)

    def moments(self) -> dict[str, tuple[str, str]]:
        """Names of the moments, and of the sums and counts by class that each of them has."""
        return {"moment": (self.feature_sums_name, "counts")}

    def moments_without(self, rows: Tensor) -> dict[str, Tensor]:
        """The moments less the parts of the means of ``rows (R,)``: all there is of a class with one sample."""
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
        self._solution = None

    def clear(self) -> None:
        """Nothing has been learned any more."""
        for name in self.moments():
            getattr(self, name).zero_()
        self.total.zero_()
        self.distinct.clear()
        if self.projection is not None:
            self.projection.clear()

    # The moment is too large to be noted at every step: inside an Undo block what it gains waits for the end.
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
            self._solution = None

    def solution_problem(self, tensors: dict[str, Tensor], classes: int) -> str | None:
        """What is wrong with the part of a saved state that :func:`take_solution` takes, None if nothing is."""
        return solution_problem(tensors, classes, len(self.moment))

    def solution_bytes(self, new_classes: int) -> int:
        """What a solution with so many more classes adds to the bytes of the state as it is now."""
        settings = self.settings()
        now = {} if self._solution is None else self._solution.tensors(settings)
        then = (self.num_rows + new_classes) * (len(self.moment) + 2) + self.FACTS + len(settings)
        return 8 * then - sum(tensor.nbytes for tensor in now.values())

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if self._solution is not None:
            # To be made anew, as it is where the state is loaded: learning goes on from there with the same bits.
            self._solution.inverse = None
            destination |= {prefix + name: tensor for name, tensor in self._solution.tensors(self.settings()).items()}

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
        tensors = take_solution(state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing, unexpected, errors)
        self._solution = None
        if problem := self.solution_problem(tensors, self.num_rows):
            errors.append(f"{prefix}: {problem}")
        else:
            self._solution = solution_of(tensors, self.settings(), self.FACTS, self.moment.device)

    def _apply(self, fn, recurse=True):
        if self._solution is not None:
            self._solution = self._solution.moved(move_only(fn))
        return super()._apply(fn, recurse)
