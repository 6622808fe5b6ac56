import sys

import pytest
import torch

from avalanche_f2ocl.heads import LDAHead
from avalanche_f2ocl.heads.calibration import is_due
from avalanche_f2ocl.heads.head import Judging
from benchmarks.beyond import calibration, encoded
from benchmarks.beyond.calibration import chance, expected_calibration_error
from benchmarks.beyond.encoded import hold_out, order_of


def test_expected_calibration_error_by_hand():
    confidence = torch.tensor([0.95, 0.95, 0.95, 0.95, 0.35, 0.35])
    right = torch.tensor([True, True, True, False, False, True])
    assert expected_calibration_error(confidence, right) == pytest.approx(4 / 6 * 0.2 + 2 / 6 * 0.15, abs=1e-6)


def test_honest_predictions_are_off_by_chance_alone():
    assert chance(torch.full((100_000,), 0.7)) < 0.01 < chance(torch.full((100,), 0.7))


def test_an_order_has_its_classes_in_groups_and_each_image_once():
    labels = torch.arange(60) % 6
    order = order_of(labels, 3, seed=1)
    assert sorted(order.tolist()) == list(range(60))
    assert all(len(labels[part].unique()) == 2 for part in order.split(20))


def test_a_share_of_each_class_is_held_out():
    labels = torch.arange(60) % 6
    kept, held = hold_out(labels, 0.2, seed=1)
    assert sorted([*kept.tolist(), *held.tolist()]) == list(range(60))
    assert labels[held].bincount().tolist() == [2] * 6


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(encoded.COUNTS, "digits", (3, None))

    def run(*arguments):
        common = ["--data-dir", ".", "--weights", "none", "--datasets", "digits", "--seeds", "1"]
        monkeypatch.setattr(sys, "argv", ["calibration", *common, "--results", str(tmp_path), *arguments])
        monkeypatch.setattr(encoded, "images_of", few_digits)
        monkeypatch.setattr(calibration, "images_of", few_digits)
        calibration.main()
        return capsys.readouterr().out

    return run


def few_digits(name, data_dir, of=encoded.images_of):
    train, test = of(name, data_dir)
    return train, encoded.Images(*(part[:60] for part in test))


def test_the_command_prints_a_row_for_each_method(run):
    printed = run("--methods", "ncm", "lda", "best")
    rows = [line.split(" | ") for line in printed.splitlines() if line.startswith("| ")]
    assert [row[0] for row in rows[1:]] == ["| ncm", "| lda", "| best"]
    assert all(0 <= float(row[i]) <= 1 for row in rows[1:] for i in range(3, 8))


def test_the_search_prints_a_row_for_each_change(run, monkeypatch):
    searched = {
        "ncm": (calibration.METHODS["ncm"], {"samples": (0,)}),
        "ridge-blocks": calibration.SEARCHED["ridge-blocks"],
    }
    monkeypatch.setattr(calibration, "SEARCHED", searched)
    printed = run("--search")
    assert "| ncm | as chosen |" in printed and "| ncm | samples=0 |" in printed
    assert printed.count("| ridge-blocks |") == 8


def test_a_head_is_solved_once_for_all_calibrations(draw, monkeypatch):
    solved = []
    monkeypatch.setattr(LDAHead, "linear", lambda head, own=LDAHead.linear: solved.append(head) or own(head))
    x, y = torch.randn(200, 4, generator=draw), torch.arange(200) % 3
    judgings = [None, Judging(samples=2), Judging(samples=0)]
    head, calibrations = calibration.learned(calibration.METHODS["lda"], [4], x, y, torch.arange(200), judgings)
    own, same, other = (c.state_dict() for c in calibrations)
    assert len(solved) == sum(is_due(n, head.judging.growth) for n in range(1, 21))
    assert all(torch.equal(own[key], same[key]) for key in own) and not torch.equal(own["losses"], other["losses"])
