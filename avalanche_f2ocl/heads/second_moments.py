"""Linear classifiers that are solved from class sums and the second moment, such as LDA and ridge regression."""

from abc import abstractmethod

import torch
from torch import Tensor
from torch.nn import functional as F

from avalanche_f2ocl.heads.head import Judging
from avalanche_f2ocl.heads.moment_sums import MomentSums
from avalanche_f2ocl.heads.projection import RandomProjection
from avalanche_f2ocl.heads.solution import Settings, Solution, solution_of, solution_problem, take_solution
from avalanche_f2ocl.state.class_means import mask_unseen
from avalanche_f2ocl.state.rows import move_only


class SecondMomentHead(MomentSums):
    """A linear classifier that is solved from sums over the stream, at the first prediction after an update.

    The ``state_dict`` includes a current solution, so that a loaded head predicts at once.

    Args:
        dim, projection: those of :class:`avalanche_f2ocl.heads.moment_sums.MomentSums`, which describes the sums.
    """

    FACTS = 0
    """Number of further numbers that a solution has besides its tensors."""
    at_once = False
    judging = Judging(samples=2)

    def __init__(self, dim: int, projection: RandomProjection | None = None) -> None:
        super().__init__(dim, projection)
        self._solution: Solution | None = None

    @abstractmethod
    def settings(self) -> Settings:
        """The settings of the solution; a saved solution can only be used by a head with the same settings."""

    @abstractmethod
    def solve(self, moment: Tensor, total: Tensor, distinct: Tensor) -> Solution:
        """Solves from the class sums, the moment and its numbers of samples and different images."""

    def advance(self, solution: Solution, features: Tensor, rows: Tensor) -> Solution | None:
        """The solution updated with ``features (B, P)`` of classes ``rows (B,)``; None if it must be solved again.

        The sums already include these samples.
        """
        return None

    @torch.no_grad()
    def update(self, vectors: Tensor, rows: Tensor, images: Tensor | None = None, codes: Tensor | None = None) -> None:
        """Adds a mini-batch, see :meth:`avalanche_f2ocl.heads.moment_sums.MomentSums.add_samples`."""
        solution = self._solution
        features = self.add_samples(vectors, rows, images, codes)
        if solution is not None:
            with torch.inference_mode(False), torch.no_grad():
                self._solution = self.advance(solution, features, rows)

    @torch.no_grad()
    def remove(self, vectors: Tensor, rows: Tensor, images: Tensor | None = None, codes: Tensor | None = None) -> None:
        """Takes out a mini-batch, see :meth:`avalanche_f2ocl.heads.moment_sums.MomentSums.remove_samples`."""
        self.remove_samples(vectors, rows, images, codes)

    def outdated(self) -> None:
        self._solution = None

    def solution(self) -> Solution:
        """The solution of what has been learned so far; solved now if it is not current."""
        if self._solution is None:
            self._solution = self.solved()
        return self._solution

    def solved(self) -> Solution:
        """The solution of what has been learned so far, always solved now."""
        return self.solve(*self.problem())

    @property
    def linear_width(self) -> int:
        return len(self.moment)

    def linear(self) -> tuple[Tensor, Tensor]:
        """The present linear classifier, solved without using or changing the head's own solution."""
        return self.solved().linear()

    @torch.no_grad()
    def prepare(self) -> None:
        """Solves now what the next prediction would otherwise have to solve."""
        self.solution()

    def logits(self, vectors: Tensor) -> Tensor:
        """Scores of ``vectors (B, F)`` for the classes so far: ``(B, C)`` float32."""
        scores, counts = self.solution().outputs(self.features(vectors)).float(), self.used("counts")
        # Classes that came after the solution was made have no sample yet.
        return mask_unseen(F.pad(scores, (0, len(counts) - scores.shape[1])), counts)

    def solution_problem(self, tensors: dict[str, Tensor], classes: int) -> str | None:
        """Says what is wrong with the solution in a saved state, see :func:`take_solution`; None if nothing is."""
        return solution_problem(tensors, classes, len(self.moment))

    def solution_bytes(self, new_classes: int) -> int:
        """The bytes that a solution with ``new_classes`` more classes adds to the present state."""
        settings = self.settings()
        now = {} if self._solution is None else self._solution.tensors(settings)
        then = (self.num_rows + new_classes) * (len(self.moment) + 2) + self.FACTS + len(settings)
        return 8 * then - sum(tensor.nbytes for tensor in now.values())

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if self._solution is not None:
            # The inverse is made again, as after loading, so that learning continues with the same bits.
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
