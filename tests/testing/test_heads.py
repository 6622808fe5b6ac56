"""Heads with a fault each, and the check that finds it."""

import pytest
import torch

from avalanche_f2ocl.heads import NCMHead
from avalanche_f2ocl.testing import check_head


class KeepsNoRow(NCMHead):
    """Counts per class in a tensor that nobody knows of."""

    def __init__(self, dim):
        super().__init__(dim)
        self.seen = torch.zeros(100)

    def update(self, vectors, rows, images=None):
        super().update(vectors, rows)
        self.seen.index_add_(0, rows, torch.ones(len(rows)))

    def logits(self, z):
        return super().logits(z) * self.seen[: self.num_rows].clamp(min=1)


class Blind(NCMHead):
    def logits(self, z):
        return -super().logits(z)


class ForgetsOrder(NCMHead):
    """The last mini-batch counts double."""

    @torch.no_grad()
    def update(self, vectors, rows, images=None):
        self.sums *= 0.5
        super().update(vectors, rows)


class Relative(NCMHead):
    """Scores depend on the other images of the mini-batch."""

    def logits(self, z):
        return super().logits(z - z.mean(0))


class Unmasked(NCMHead):
    def logits(self, z):
        return z @ self.means().T


@pytest.mark.parametrize(
    "head, check",
    [
        (Blind, "learns_separated_classes"),
        (ForgetsOrder, "does_not_depend_on_the_cut_into_mini_batches"),
        (Relative, "scores_each_sample_by_itself"),
        (Unmasked, "growing_changes_no_score_and_masks_the_new_class"),
        (KeepsNoRow, "state_dict_restores_the_scores"),
    ],
)
def test_a_fault_is_found(head, check):
    with pytest.raises(AssertionError) as found:
        check_head(head)
    assert check in {frame.name for frame in found.traceback}


def test_checks_can_be_left_out_by_name():
    check_head(Unmasked, skip=["growing_changes_no_score_and_masks_the_new_class", "no_class_and_no_sample"])
    with pytest.raises(ValueError, match="skip='growing': allowed are 'learns_separated_classes'"):
        check_head(Unmasked, skip=["growing"])
