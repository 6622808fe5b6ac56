"""Checks of what models expect of a head."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from avalanche_f2ocl.rng import generator
from avalanche_f2ocl.state.class_means import MASKED_LOGIT
from avalanche_f2ocl.state.rows import ClassRows, Undoable
from avalanche_f2ocl.state.undo import Undo

MakeHead = Callable[[int], Any]
"""Makes a new head, given the number of features."""


def learns_separated_classes(make: MakeHead) -> None:
    """More than 95 % of three well separated classes are right."""
    z, rows = _blobs()
    assert (_fitted(make, z, rows).logits(z).argmax(1) == rows).float().mean() > 0.95


def does_not_depend_on_the_cut_into_mini_batches(make: MakeHead) -> None:
    """Mini-batches of seven and of ten samples give the same scores."""
    z, rows = _blobs()
    torch.testing.assert_close(
        _fitted(make, z, rows).logits(z), _fitted(make, z, rows, size=7).logits(z), rtol=1e-5, atol=1e-5
    )


def does_not_depend_on_the_order(make: MakeHead) -> None:
    """Skip it for heads whose equations take one sample after the other."""
    z, rows = _blobs()
    order = torch.randperm(90, generator=generator(0, "order"))
    torch.testing.assert_close(
        _fitted(make, z, rows).logits(z), _fitted(make, z[order], rows[order]).logits(z), rtol=1e-5, atol=1e-5
    )


def scores_each_sample_by_itself(make: MakeHead) -> None:
    """Other samples of the mini-batch do not affect the score."""
    z, rows = _blobs()
    head = _fitted(make, z, rows)
    torch.testing.assert_close(torch.cat([head.logits(one) for one in z.split(1)]), head.logits(z))


def has_prototypes(make: MakeHead) -> None:
    """Its class means are those of the vectors."""
    z, rows = _blobs()
    head = _fitted(make, z, rows)
    torch.testing.assert_close(head.means()[1], z[rows == 1].mean(0))
    torch.testing.assert_close(head.means(torch.tensor([2])), z[rows == 2].mean(0, keepdim=True))


def growing_changes_no_score_and_masks_the_new_class(make: MakeHead) -> None:
    """Room for new classes changes nothing for the others."""
    z, rows = _blobs()
    head = _fitted(make, z, rows)
    before = head.logits(z)
    head.add_rows(2)
    after = head.logits(z)
    # Not bit for bit, since some processors round products with five columns differently than with three.
    torch.testing.assert_close(after[:, :3], before, rtol=1e-5, atol=1e-6)
    assert (after[:, 3:] == MASKED_LOGIT).all()


def no_class_and_no_sample(make: MakeHead) -> None:
    """Neither raises an error."""
    head = make(6)
    assert head.logits(torch.ones(2, 6)).shape == (2, 0)
    head.add_rows(1)
    assert head.logits(torch.ones(2, 6)).tolist() == [[MASKED_LOGIT]] * 2


def state_dict_restores_the_scores(make: MakeHead) -> None:
    """The scores are the same, bit for bit."""
    z, rows = _blobs()
    head, other = _fitted(make, z, rows), make(6)
    other.load_state_dict(head.state_dict())
    assert torch.equal(other.logits(z), head.logits(z))


def a_row_taken_out_leaves_the_others(make: MakeHead) -> None:
    """Counts and means of the other classes stay, bit for bit; the class's own are gone."""
    z, rows = _blobs()
    head = _fitted(make, z, rows)
    before = head.means()
    for part in [part for part in head.modules() if isinstance(part, ClassRows)]:
        part.remove_row(1)
    assert head.num_rows == 2 and head.used("counts").tolist() == [30, 30]
    assert torch.equal(head.means(), before[[0, 2]]) and head.logits(z).shape == (90, 2)


def what_fails_is_taken_back(make: MakeHead) -> None:
    """An :class:`avalanche_f2ocl.state.undo.Undo` block that fails leaves the head as it was."""
    z, rows = _blobs()
    head = _fitted(make, z, rows)
    before = {name: tensor.clone() for name, tensor in head.state_dict().items()}
    parts = [part for part in head.modules() if isinstance(part, Undoable)]
    try:
        with Undo(parts) as undo:
            head.add_rows(1)
            undo.save_rows(torch.arange(4))
            head.update(z[:8], torch.arange(8) % 4)
            raise InterruptedError
    except InterruptedError:
        pass
    after = head.state_dict()
    solution = {name for name in before if "solution_" in name}  # solved again if it is gone
    assert before.keys() - solution == after.keys() - solution
    for name in after:
        assert torch.equal(before[name], after[name]), name


HEAD_CHECKS = (
    learns_separated_classes,
    does_not_depend_on_the_cut_into_mini_batches,
    does_not_depend_on_the_order,
    scores_each_sample_by_itself,
    has_prototypes,
    growing_changes_no_score_and_masks_the_new_class,
    no_class_and_no_sample,
    state_dict_restores_the_scores,
    a_row_taken_out_leaves_the_others,
    what_fails_is_taken_back,
)


def _blobs() -> tuple[Tensor, Tensor]:
    """Three well separated classes in 6 dimensions, z ``(90, 6)`` and rows ``(90,)``."""
    rows = torch.arange(90) % 3
    return torch.eye(6)[rows] * 5 + torch.randn(90, 6, generator=generator(0, "blobs")), rows


def _fitted(make: MakeHead, z: Tensor, rows: Tensor, size: int = 10) -> Any:
    head = make(z.shape[1])
    head.add_rows(3)
    for part in torch.arange(len(z)).split(size):
        head.update(z[part], rows[part])
    return head
