"""What is counted in the orders against what was asked for."""

from itertools import groupby

import numpy as np
import pytest
import torch

from avalanche_f2ocl.streams.orders import (
    drifting_order,
    long_tail_counts,
    long_tailed_order,
    recurring_order,
    shuffled_order,
    si_blurry_order,
    si_blurry_tasks,
)

IDS = torch.tensor([-3, 0, 7, 8, 20, 21, 22, 40, 41, 900])
TARGETS = IDS.repeat(100)  # 100 of each class
ORDERS = {
    "shuffled": shuffled_order,
    "si-blurry": si_blurry_order,
    "drifting": drifting_order,
    "long-tailed": long_tailed_order,
    "recurring": recurring_order,
}


def runs(labels):
    """The values of runs of equal neighbours."""
    return [value for value, _ in groupby(labels.tolist())]


@pytest.fixture(params=ORDERS)
def order(request):
    return ORDERS[request.param]


def test_same_seed_same_order_and_the_global_generator_is_left_alone(order):
    before = torch.random.get_rng_state()
    one, same, other = (order(TARGETS, seed) for seed in (0, 0, 1))
    assert one.dtype == torch.int64 and torch.equal(one, same) and one.tolist() != other.tolist()
    assert torch.equal(torch.random.get_rng_state(), before)


def test_each_sample_comes_once(order):
    indices = order(TARGETS, 0).tolist()
    assert len(set(indices)) == len(indices)
    if order is not long_tailed_order:
        assert sorted(indices) == list(range(1000))


def test_one_sample_and_one_class(order):
    one_group = {"groups": 1} if order is recurring_order else {}
    assert order(torch.tensor([5]), 0, **one_group).tolist() == [0]


def test_shuffled_mixes_evenly():
    halves = TARGETS[shuffled_order(TARGETS, 0)].view(2, 500)
    for half in halves:
        counts = [int((half == i).sum()) for i in IDS]
        assert all(30 < count < 70 for count in counts)  # 50, standard deviation 3.5


@pytest.mark.parametrize("disjoint, whole", [(0, 0), (0.5, 5), (0.72, 7), (1, 10)])
def test_si_blurry_share_of_classes_in_one_task(disjoint, whole):
    tasks = si_blurry_tasks(TARGETS, 0, tasks=4, disjoint=disjoint, blur=1)
    spread = [len(tasks[TARGETS == i].unique()) for i in IDS]
    assert spread.count(1) == whole and min(tasks) >= 0 and max(tasks) <= 3
    assert all(n > 2 for n in spread if n > 1)


@pytest.mark.parametrize("blur", [0, 0.1, 0.5])
def test_si_blurry_share_of_samples_that_leave_their_task(blur):
    tasks = si_blurry_tasks(TARGETS, 3, tasks=5, disjoint=0.2, blur=blur)
    home = si_blurry_tasks(TARGETS, 3, tasks=5, disjoint=0.2, blur=0)
    moved = tasks != home
    assert moved.sum() <= round(blur * 800)
    # A drawn sample may be dealt to its own task: that of a sample in five, were tasks of one size.
    assert moved.sum() >= 0.5 * blur * 800
    assert len(TARGETS[moved].unique()) == (8 if blur else 0)


def test_si_blurry_tasks_differ_in_classes_and_samples_between_tasks_and_seeds():
    numbers = [tuple(si_blurry_tasks(TARGETS, seed).bincount(minlength=5).tolist()) for seed in range(5)]
    assert len(set(numbers)) == 5 and all(max(n) > min(n) for n in numbers)


def test_si_blurry_order_goes_from_task_to_task_and_mixes_within():
    tasks = si_blurry_tasks(TARGETS, 0)
    ordered = si_blurry_order(TARGETS, 0)
    assert tasks[ordered].tolist() == sorted(tasks.tolist())
    assert len(runs(TARGETS[ordered])) > 300


@pytest.mark.parametrize("width", [0.02, 0.1])
def test_drifting_classes_lie_around_their_centres(width):
    labels = TARGETS[drifting_order(TARGETS, 0, width)]
    positions = [(labels == i).nonzero().double() / 1000 for i in IDS]
    centres = sorted(float(p.median()) for p in positions)
    # Away from the ends the stream's clock runs evenly; there it is squeezed.
    assert centres[2:8] == pytest.approx([0.25, 0.35, 0.45, 0.55, 0.65, 0.75], abs=0.04)
    middle = [p for p in positions if 0.2 < p.median() < 0.8]
    assert np.mean([float(p.std()) for p in middle]) == pytest.approx(max(width, 0.1 / 12**0.5), rel=0.2)


def test_drifting_frequencies_follow_the_normal_distribution():
    labels = TARGETS.repeat(20)
    labels = labels[drifting_order(labels, 0, width=0.1)]
    in_the_middle = labels[9500:10500]
    by_share = sorted((float((in_the_middle == i).double().mean()) for i in IDS), reverse=True)
    densities = np.sort(np.exp(-0.5 * ((np.arange(10) / 10 + 0.05 - 0.5) / 0.1) ** 2))[::-1]
    assert by_share == pytest.approx(densities / densities.sum(), abs=0.04)


def test_long_tail_of_the_published_sets():
    cifar10 = long_tail_counts(5000, 10, 100)
    assert cifar10.tolist() == [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]
    assert long_tail_counts(500, 100, 100).sum() == 10847


@pytest.mark.parametrize(
    "largest, classes, imbalance, counts",
    [
        (1000, 4, 1000, [1000, 100, 10, 1]),  # 1000 * 1000 ** (-c / 3)
        (80, 5, 16, [80, 40, 20, 10, 5]),
        (9, 3, 1, [9, 9, 9]),
        (10, 3, 100, [10, 1, 1]),  # 0.1 is too few
        (7, 1, 100, [7]),
    ],
)
def test_long_tail_by_hand(largest, classes, imbalance, counts):
    assert long_tail_counts(largest, classes, imbalance).tolist() == counts


def test_long_tailed_keeps_the_counts_of_random_classes():
    counts = [TARGETS[long_tailed_order(TARGETS, seed, 100)] for seed in (0, 1)]
    counts = [[int((labels == i).sum()) for i in IDS] for labels in counts]
    assert sorted(counts[0]) == sorted(counts[1]) == sorted(long_tail_counts(100, 10, 100).tolist())
    assert counts[0] != counts[1] and counts[0] != sorted(counts[0])


def test_long_tailed_where_a_class_is_smaller():
    targets = torch.tensor([0] * 3 + [1] * 100)
    kept = {tuple(targets[long_tailed_order(targets, seed, 4)].bincount().tolist()) for seed in range(8)}
    assert kept == {(3, 25), (3, 100)}


def test_long_tailed_is_mixed_and_comes_in_groups_if_asked():
    labels = TARGETS[long_tailed_order(TARGETS, 0, 2)].tolist()
    assert set(labels[:150]) == set(labels[-150:]) == set(IDS.tolist())
    labels = TARGETS[long_tailed_order(TARGETS, 0, 2, groups=10)]
    assert sorted(runs(labels)) == IDS.tolist()
    sizes = [int((labels == i).sum()) for i in runs(labels)]
    assert sizes not in (sorted(sizes), sorted(sizes, reverse=True))


@pytest.mark.parametrize("groups, repeats", [(2, 4), (5, 2), (1, 4), (10, 1)])
def test_recurring_groups_come_back_with_their_share(groups, repeats):
    visits = TARGETS[recurring_order(TARGETS, 0, groups, repeats)].view(groups * repeats, -1)
    classes = [sorted(set(visit.tolist())) for visit in visits]
    assert classes == classes[:groups] * repeats and sorted(sum(classes[:groups], [])) == IDS.tolist()
    for visit in visits:
        assert all((visit == i).sum() == 100 // repeats for i in visit.unique())


def test_recurring_shares_that_do_not_divide_evenly():
    labels = TARGETS[recurring_order(TARGETS, 0, groups=10, repeats=3)].tolist()
    lengths = [len(list(run)) for _, run in groupby(labels)]
    assert sorted(lengths) == [33] * 20 + [34] * 10


def test_recurring_by_hand():
    targets = torch.tensor([5, 5, 5, 5, 6, 6, 6, 6])
    labels = targets[recurring_order(targets, 0, groups=2, repeats=2)].tolist()
    assert labels in ([5, 5, 6, 6, 5, 5, 6, 6], [6, 6, 5, 5, 6, 6, 5, 5])


@pytest.mark.parametrize(
    "order, options, error, message",
    [
        (si_blurry_order, {"tasks": 0}, ValueError, "tasks=0"),
        (si_blurry_order, {"disjoint": 1.1}, ValueError, "disjoint=1.1: must be between 0 and 1"),
        (si_blurry_order, {"disjoint": True}, TypeError, "disjoint=True"),
        (si_blurry_order, {"blur": -0.1}, ValueError, "blur=-0.1"),
        (si_blurry_order, {"blur": float("nan")}, ValueError, "blur=nan"),
        (si_blurry_order, {"blur": "10"}, TypeError, "blur='10'"),
        (drifting_order, {"width": 0}, ValueError, "width=0"),
        (long_tailed_order, {"imbalance": 0.5}, ValueError, "imbalance=0.5: must be at least 1"),
        (long_tailed_order, {"imbalance": None}, TypeError, "imbalance=None"),
        (long_tailed_order, {"groups": 11}, ValueError, "groups=11: the data has 10 classes"),
        (recurring_order, {"groups": 11}, ValueError, "groups=11: the data has 10 classes"),
        (recurring_order, {"groups": 1.0}, TypeError, "groups=1.0"),
        (recurring_order, {"repeats": 0}, ValueError, "repeats=0"),
    ],
)
def test_options_out_of_range(order, options, error, message):
    with pytest.raises(error, match=message):
        order(TARGETS, 0, **options)
