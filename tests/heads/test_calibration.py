from math import exp

import pytest
import torch

from avalanche_f2ocl.heads import EitherHead, EnsembleHead, LDAHead, NCMHead, RidgeHead
from avalanche_f2ocl.heads.calibration import RIVALS, Calibration, brier_scores, is_due, lowest
from avalanche_f2ocl.state.class_means import MASKED_LOGIT
from avalanche_f2ocl.state.undo import Undo


def begun(head, classes=10):
    calibration = Calibration(head)
    for part in (head, calibration):
        part.add_rows(classes)
    return calibration


def stream(head, calibration, x, y, size=10):
    for number, rows in enumerate(torch.arange(len(x)).split(size), start=1):
        calibration.judge(head, x[rows], y[rows])
        head.update(x[rows], y[rows])
        calibration.hold(head, number)


def test_brier_scores_by_hand():
    logits, temperatures = torch.tensor([[1.0, 3.0, 2.0]]), torch.tensor([1.0, 2.0])
    losses, right = brier_scores(logits, torch.tensor([2]), temperatures)
    for k, t in enumerate((1.0, 2.0)):
        powers = [exp(value / t) for value in (1, 3, 2)]
        p = [power / sum(powers) for power in powers]
        assert right[0, k] == pytest.approx(p[2])
        assert 1 + losses[0, k] == pytest.approx(p[0] ** 2 + p[1] ** 2 + (1 - p[2]) ** 2, abs=1e-6)


def test_of_many_classes_the_highest_rivals_count(draw):
    logits = torch.randn(4, 2 * RIVALS, generator=draw)
    logits[:, RIVALS + 1 :] -= 1e6
    rows = torch.tensor([0, 5, 9, 3])
    few = brier_scores(logits[:, : RIVALS + 1], rows, torch.ones(1))
    torch.testing.assert_close(brier_scores(logits, rows, torch.ones(1)), few)


def test_the_parabola_finds_the_least_between_places():
    places = torch.logspace(-1, 1, 21, dtype=torch.float64)
    losses = (places.log10() - 0.123) ** 2
    assert lowest(places, losses).log10().item() == pytest.approx(0.123, abs=1e-9)


@pytest.mark.parametrize("growth, expected", [(2.0, [8, 16, 32, 64]), (1.1, [8, 9, 10, 11, 12, 13, 15, 16, 18])])
def test_when_a_head_is_solved(growth, expected):
    assert [n for n in range(100) if is_due(n, growth)][: len(expected)] == expected


HEADS = {
    "ncm": lambda dim: NCMHead(dim),
    "euclidean": lambda dim: NCMHead(dim, "euclidean"),
    "lda": LDAHead,
    "ridge": lambda dim: RidgeHead(dim, projection=0),
    "projected": lambda dim: RidgeHead(dim, projection=80),
    "ensemble": lambda dim: EnsembleHead([RidgeHead(dim // 2, projection=0) for _ in range(2)]),
    "either": lambda dim: EitherHead([NCMHead(dim // 2), NCMHead(dim // 2)]),
    "either-ridge": lambda dim: EitherHead([RidgeHead(dim // 2, projection=0) for _ in range(2)]),
}


@pytest.mark.parametrize("name", HEADS)
def test_probabilities_are_honest_on_digits_whose_classes_come_one_after_the_other(name, data):
    """Mean confidence is accuracy to a few points, where softmax of the logits is far off or the head is near 100 %."""
    x, y = data
    order = torch.cat([(y[:1200] // 2 == group).nonzero().squeeze(1) for group in range(5)])
    head = HEADS[name](x.shape[1])
    calibration = begun(head)
    stream(head, calibration, x[order], y[order])
    logits = head.logits(x[1200:]).double()
    accuracy = (logits.argmax(1) == y[1200:]).double().mean()
    confidence = calibration.probabilities(logits, 99.0).amax(1).mean()
    assert abs(confidence - accuracy) < 0.05, (confidence, accuracy)


def test_the_held_classifier_is_the_heads_own(data):
    x, y = data
    for make in (HEADS["lda"], HEADS["projected"], HEADS["ensemble"]):
        head = make(x.shape[1])
        calibration = begun(head)
        head.update(x[:300], y[:300])
        calibration.hold(head, 8)
        held = head.features(x[300:]).float() @ calibration.used("weight").T + calibration.used("bias")
        torch.testing.assert_close(held, head.logits(x[300:]), rtol=1e-3, atol=1e-3)


def test_a_solution_at_hand_is_neither_used_nor_changed(data):
    x, y = data
    head = RidgeHead(x.shape[1], projection=0)
    calibration = begun(head)
    head.update(x[:300], y[:300])
    head.prepare()
    solution = head.solution()
    calibration.hold(head, 8)
    assert head.solution() is solution


def test_deviations_by_hand():
    """Variances 4 and 16 over two of three classes, typically 10: of 2 + 20 classes' worth, 2 are the image's own."""
    calibration = Calibration(NCMHead(2))
    calibration.evidence, calibration.spread = torch.tensor([2.0, 2.0]).double(), torch.tensor(20.0).double()
    logits = torch.tensor([[1.0, 5.0, MASKED_LOGIT], [0.0, 8.0, MASKED_LOGIT]])
    squares = torch.tensor([(2 * 4 + 20 * 10) / 22, (2 * 16 + 20 * 10) / 22])
    torch.testing.assert_close(calibration.evened(logits), logits / squares.sqrt().unsqueeze(1))


def test_a_single_class_is_certain():
    head = NCMHead(2)
    calibration = begun(head, 1)
    for _ in range(3):
        calibration.judge(head, torch.eye(2).repeat(10, 1), torch.zeros(20, dtype=torch.int64))
        head.update(torch.eye(2).repeat(10, 1), torch.zeros(20, dtype=torch.int64))
    assert calibration.probabilities(head.logits(torch.eye(2)), 1.0).tolist() == [[1.0], [1.0]]


def test_until_ten_samples_have_been_judged_the_default_holds(data):
    x, y = data
    head = NCMHead(x.shape[1])
    calibration = begun(head)
    head.update(x[:40], y[:40])
    calibration.judge(head, x[40:49], y[40:49])
    logits = head.logits(x[90:100])
    torch.testing.assert_close(calibration.probabilities(logits, 0.7), (logits / 0.7).softmax(1))
    calibration.judge(head, x[49:90], y[49:90])
    assert calibration.probabilities(logits, 0.7).amax() > 2 * (logits / 0.7).softmax(1).amax()


def test_a_head_that_was_never_wrong_is_not_sure():
    """Right n times of n, a classifier of two classes is right with (n + 1/2) / (n + 1) by Krichevsky and Trofimov."""
    head = NCMHead(2)
    calibration = begun(head, 2)
    x, y = torch.eye(2).repeat(50, 1), torch.tensor([0, 1]).repeat(50)
    head.update(x, y)
    calibration.judge(head, x, y)
    confidence = calibration.probabilities(head.logits(torch.eye(2)), 1.0).amax()
    assert confidence.item() == pytest.approx(100.5 / 101, abs=0.001)


@pytest.mark.parametrize(
    "name, power, by_classes", [("ncm", 2, 1), ("lda", 2, 1), ("ridge", 1, 10), ("ensemble", 1, 10)]
)
def test_a_sample_weighs_as_many_of_its_class_and_as_many_classes_have_been_seen(name, power, by_classes, data):
    x, y = data
    head = HEADS[name](x.shape[1])
    calibration = begun(head)
    head.update(x[:100], y[:100])
    calibration.hold(head, 8)
    calibration.judge(head, x[100:120], y[100:120])
    weights = by_classes * y[:100].bincount()[y[100:120]] ** power
    assert calibration.evidence.tolist() == [weights.sum(), (weights**2).sum()]


def test_highest_logits_are_told_of_a_solved_head_where_it_knew_the_class(data):
    x, y = data
    head, known = LDAHead(x.shape[1]), y < 5
    calibration = begun(head)
    head.update(x[known][:200], y[known][:200])
    calibration.hold(head, 8)
    highest = calibration.judge(head, x[300:340], y[300:340])
    assert torch.equal(highest.isnan(), ~known[300:340])
    by_hand = head.logits(x[300:340]).amax(1)[known[300:340]]
    torch.testing.assert_close(highest[known[300:340]], by_hand, rtol=1e-3, atol=1e-3)
    means = NCMHead(x.shape[1])
    assert begun(means).judge(means, x[:5], y[:5]) is None


def test_samples_of_new_classes_are_not_judged(data):
    x, y = data
    head = NCMHead(x.shape[1])
    calibration = begun(head)
    calibration.judge(head, x[:50], y[:50])
    assert calibration.evidence.tolist() == [0, 0] and calibration.temperature().isnan()


@pytest.mark.parametrize("name", ["ncm", "ridge"])
def test_a_mini_batch_that_fails_leaves_no_trace(name, data):
    x, y = data
    head = HEADS[name](x.shape[1])
    calibration = begun(head, 5)
    known = (y < 5).nonzero().squeeze(1)[:100]
    stream(head, calibration, x[known], y[known])
    before = {key: tensor.clone() for key, tensor in calibration.state_dict().items()}
    with pytest.raises(OSError), Undo([head, calibration]) as undo:
        for part in (head, calibration):
            part.add_rows(70)  # beyond the capacity
        undo.save_rows(torch.arange(75))
        calibration.judge(head, x[:50], y[:50])
        head.update(x[:50], y[:50])
        calibration.hold(head, 16)
        raise OSError
    after = calibration.state_dict()
    assert calibration.num_rows == 5 and all(torch.equal(after[key], before[key]) for key in before)


def test_a_head_of_another_kind_has_none():
    calibration = Calibration(object())
    calibration.add_rows(3)
    calibration.judge(object(), torch.ones(2, 4), torch.tensor([0, 1]))
    calibration.hold(object(), 8)
    logits = torch.tensor([[0.0, 5.0]])
    torch.testing.assert_close(calibration.probabilities(logits, 5.0), (logits / 5).softmax(1))


def test_with_the_last_class_all_is_forgotten(data):
    x, y = data
    head = NCMHead(x.shape[1])
    calibration = begun(head, 1)
    zeros = x[y == 0]
    head.update(zeros, torch.zeros(len(zeros), dtype=torch.int64))
    calibration.judge(head, zeros, torch.zeros(len(zeros), dtype=torch.int64))
    assert calibration.evidence[0] > 0
    calibration.remove_row(0)
    assert calibration.evidence.tolist() == [0, 0] and not calibration.losses.any() and calibration.spread == 0
