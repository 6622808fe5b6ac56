"""Linear classifiers that are solved from class sums and the second moment, as LDA and ridge regression are."""

from abc import abstractmethod

import torch
from torch import Tensor
from torch.nn import functional as F

from avalanche_f2ocl.heads.moment_sums import MomentSums
from avalanche_f2ocl.heads.projection import RandomProjection
from avalanche_f2ocl.heads.solution import Settings, Solution, solution_of, solution_problem, take_solution
from avalanche_f2ocl.state.class_means import mask_unseen
from avalanche_f2ocl.state.rows import move_only


class SecondMomentHead(MomentSums):
    """A linear classifier solved from sums over the stream, when a prediction is asked for after an update.

    A solution that is current goes with the ``state_dict``: what is loaded with one predicts at once.

    Args:
        dim, projection: those of :class:`avalanche_f2ocl.heads.moment_sums.MomentSums`, which says what is summed.
    """

    FACTS = 0
    """Numbers that a solution has beside its tensors."""
    at_once = False
    count_power = 2
    hold_growth = 1.1

    def __init__(self, dim: int, projection: RandomProjection | None = None) -> None:
        super().__init__(dim, projection)
        self._solution: Solution | None = None

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
    def update(self, vectors: Tensor, rows: Tensor, images: Tensor | None = None, codes: Tensor | None = None) -> None:
        """Adds a mini-batch; arguments as :meth:`avalanche_f2ocl.heads.moment_sums.MomentSums.add_samples`."""
        solution = self._solution
        features = self.add_samples(vectors, rows, images, codes)
        if solution is not None:
            with torch.inference_mode(False), torch.no_grad():
                self._solution = self.advance(solution, features, rows)

    @torch.no_grad()
    def remove(self, vectors: Tensor, rows: Tensor, images: Tensor | None = None, codes: Tensor | None = None) -> None:
        """Takes a mini-batch out again; as :meth:`avalanche_f2ocl.heads.moment_sums.MomentSums.remove_samples`."""
        self.remove_samples(vectors, rows, images, codes)

    def outdated(self) -> None:
        self._solution = None

    def solution(self) -> Solution:
        """Of what has been learned so far; solved for if it is not at hand."""
        if self._solution is None:
            self._solution = self.solved()
        return self._solution

    def solved(self) -> Solution:
        """Of what has been learned so far, solved for now."""
        return self.solve(*self.problem())

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
