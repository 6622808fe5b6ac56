import json
import sys
from itertools import accumulate, product

import pytest

from avalanche_f2ocl import F2OCLStrategy
from avalanche_f2ocl.streams.online import online_stream
from benchmarks.beyond import either, settings
from benchmarks.runs import runner
from benchmarks.runs.methods import make_strategy
from benchmarks.runs.streams import make_stream


def test_the_command_writes_a_row_for_each_run(tmp_path, monkeypatch, capsys):
    few = ["--dataset", "digits", "--backbone", "micro_vit", "--groups", "2", "--train-per-class", "4"]
    monkeypatch.setattr(either, "data_of", lambda args: {"digits": [*few, "--held-out", "3"]})
    common = ["either", "--data-dir", ".", "--weights", "none", "--datasets", "digits", "--results", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [*common, "--seeds", "1", "2"])
    either.main()
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| digits |")]
    assert len(rows) == 2
    for seed in (1, 2):
        found = json.loads((tmp_path / "either" / f"digits-s{seed}.json").read_text())
        a, b = found["helped"], found["harmed"]
        assert abs(found["deviations"] - (a - b) / max(1, a + b) ** 0.5) < 0.01
        assert rows[seed - 1].endswith("both |" if found["deviations"] > 3 else "without |")


def test_the_weights_are_those_asked_for():
    run = settings.data_of(type("Args", (), {"data_dir": ".", "weights": "none"}))["digits"]
    args = runner.parse_args([*run, "--table", "t", "--method", "vit-ncm", "--train-per-class", "4", "--held-out", "4"])
    benchmark = make_stream(args)
    trained = {}
    for features in ("either", "z"):
        strategy = F2OCLStrategy(backbone="micro_vit", evaluator=None, head_features=features, seed=3)
        strategy.train(online_stream(benchmark.train_stream, 10), eval_streams=[])
        trained[features] = strategy.model
    ncm = make_strategy("vit-ncm", backbone="micro_vit", evaluator=None)
    ncm.train(online_stream(benchmark.train_stream, 10), eval_streams=[])

    def share(model):
        return either.accuracy(model, benchmark, either.WEIGHTS["both"])

    first, second = (
        either.accuracy(trained["either"], benchmark, either.WEIGHTS[n]) for n in ("under prompts", "without")
    )
    assert first == share(trained["z"]) and second == share(ncm.model)


@pytest.mark.parametrize("deviations", [1, 2, 2.5])
def test_the_chance_of_use_is_that_of_all_sequences(deviations):
    walks = [list(accumulate(steps)) for steps in product((-1, 1), repeat=12)]
    used = [any(b_less_c > deviations * n**0.5 for n, b_less_c in enumerate(walk, 1)) for walk in walks]
    assert abs(either.chance_of_use(deviations, 12) - sum(used) / len(used)) < 1e-12
    assert 0 < sum(used) < len(used)


def test_chances_are_written_below_the_runs(tmp_path, capsys):
    (tmp_path / "either").mkdir()
    found = {"helped": 1, "harmed": 0, "deviations": 1.0, "without": 50.0}
    (tmp_path / "either" / "digits-s1.json").write_text(json.dumps(found))
    either.publish(tmp_path)
    runs, chances = capsys.readouterr().out.split("\n\n")[:2]
    assert "| digits | 1 |" in runs
    assert [line.split(" | ")[0] for line in chances.strip().splitlines()[2:]] == [
        "| 1",
        "| 1.5",
        "| 2",
        "| 2.5",
        "| 3",
        "| 3.5",
    ]
