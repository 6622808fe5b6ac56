import sys

import pytest
import torch
from sklearn.metrics import roc_auc_score, roc_curve

from benchmarks.beyond import encoded, unknown, unknown_scores


def test_figures_are_scikit_learns(draw):
    known, other = torch.randn(200, generator=draw) + 1, torch.randn(300, generator=draw)
    truth, scores = [1] * 200 + [0] * 300, torch.cat([known, other]).tolist()
    assert unknown.auroc(known, other) == pytest.approx(roc_auc_score(truth, scores))
    false, true, _ = roc_curve(truth, scores)
    assert unknown.false_positives(known, other) == pytest.approx(min(false[true >= 0.95]), abs=0.01)


def test_the_command_prints_a_row_for_each_score(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(encoded.COUNTS, "digits", (8, None))
    _, digits = encoded.images_of("digits", tmp_path)
    few = encoded.Images(*(part[:260] for part in digits))
    for module in (encoded, unknown):
        monkeypatch.setattr(module, "images_of", lambda name, folder: (few, few))
        monkeypatch.setattr(module, "backbone_of", lambda name, args, of=encoded.backbone_of: of("digits", args))
    encoded._ENCODED.clear()
    unknown._FAR.clear()
    arguments = ["--data-dir", str(tmp_path), "--weights", "none", "--datasets", "pacs", "--seeds", "1"]
    for search, scores in (([], 6 + 4), (["--search"], 2 * (len(unknown_scores.WEIGHTS) + 1) + 4 + 3)):
        monkeypatch.setattr(sys, "argv", ["unknown", *arguments, *search, "--results", str(tmp_path)])
        unknown.main()
        rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| half of pacs")]
        assert len(rows) == scores and all(row[0] == "| half of pacs, 112 px" for row in rows)
        assert all(0 <= float(row[3].split(" / ")[0]) <= 1 for row in rows)
    encoded._ENCODED.clear()
    unknown._FAR.clear()
