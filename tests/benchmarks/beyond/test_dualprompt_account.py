import json
import sys

from benchmarks.beyond import dualprompt_account as account

ARGS = "--dataset digits --backbone micro_vit --groups 2 --train-per-class 6 --test-per-class 2 --seed 3".split()


def test_the_command(tmp_path, monkeypatch, capsys):
    rows = ["as here", "gradients clipped at 1"]
    monkeypatch.setattr(sys, "argv", ["x", *ARGS, "--results", str(tmp_path), "--rows", *rows])
    account.main()
    record = json.loads((tmp_path / account.TABLE / "6-2" / "row-02.json").read_text())
    assert record["clip"] == 1.0 and 0 <= record["A_n"] <= 100 and len(record["accuracies"]) == 2
    assert f"| gradients clipped at 1 | {record['A_n']:.2f} |" in capsys.readouterr().out
