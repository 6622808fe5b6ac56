import json

import numpy as np

from benchmarks.runs import runner
from benchmarks.runs.methods import LAYERS_0_1
from tests.benchmarks.runs.test_runner import arguments

HEADS = {
    "ncm": {"head_features": "z"},
    "both": {"head": "ridge", "head_features": "ensemble", "projection": 30, **LAYERS_0_1},
}


def records(folder):
    return {path.name.split("-digits")[0]: json.loads(path.read_text()) for path in (folder / "t").glob("*.json")}


def answers(folder, method):
    with np.load(folder / "t" / f"{method}-digits-micro_vit-s0.npz") as saved:
        return saved["predictions"].tolist()


def test_they_answer_as_strategies_of_their_own(tmp_path):
    """One training for all, against a training for each."""
    options = {"prompt_length": 3, "projection": 30}
    together = [*arguments("f2ocl-ridge-ensemble", tmp_path / "all"), "--heads", json.dumps(HEADS)]
    runner.main([*together, "--options", json.dumps(options)])
    found = records(tmp_path / "all")
    assert set(found) == {"f2ocl-ridge-ensemble", *HEADS}
    for name, head in HEADS.items():
        own = json.dumps(options | head)
        runner.main([*arguments("f2ocl", tmp_path / name), "--options", own])
        alone = records(tmp_path / name)["f2ocl"]
        for figure in ("T", "A_n", "A_n_samples", "F_n", "A_k"):
            assert found[name][figure] == alone[figure], (name, figure)
        assert answers(tmp_path / "all", name) == answers(tmp_path / name, "f2ocl")
        assert found[name]["config"]["trained_with"] == "f2ocl-ridge-ensemble"
    assert found["both"]["T"] == found["f2ocl-ridge-ensemble"]["T"]


def test_without_prompts_z_is_q(tmp_path):
    heads = {"vit-ncm": {"head_features": "q"}, "z": {"head_features": "z"}}
    runner.main([*arguments("vit-ridge-layers", tmp_path / "all"), "--heads", json.dumps(heads)])
    runner.main(arguments("vit-ncm", tmp_path / "one"))
    found = records(tmp_path / "all")
    assert found["vit-ncm"]["T"] == found["z"]["T"] == records(tmp_path / "one")["vit-ncm"]["T"]


def test_z_is_noted_where_no_layers_are_asked_for(tmp_path):
    options = ["--options", json.dumps({"prompt_length": 3})]
    heads = {"z": {"head_features": "z"}, "q": {"head_features": "q"}}
    runner.main([*arguments("f2ocl-either", tmp_path / "all"), *options, "--heads", json.dumps(heads)])
    runner.main([*arguments("f2ocl", tmp_path / "one"), *options])
    found = records(tmp_path / "all")
    assert found["z"]["T"] == records(tmp_path / "one")["f2ocl"]["T"] != found["q"]["T"]


def test_their_accuracy_at_any_time_is_that_of_strategies_of_their_own(tmp_path):
    more = ["--options", json.dumps({"prompt_length": 3}), "--stream", "si-blurry", "--every", "20"]
    heads = {"ncm": {"head_features": "z"}}
    runner.main([*arguments("f2ocl-either", tmp_path / "all"), *more, "--heads", json.dumps(heads)])
    runner.main([*arguments("f2ocl", tmp_path / "one"), *more])
    found, alone = records(tmp_path / "all"), records(tmp_path / "one")["f2ocl"]
    for figure in ("samples", "classes_seen", "accuracy", "A_auc", "A_last"):
        assert found["ncm"][figure] == alone[figure], figure
    assert found["ncm"]["accuracy"] != found["f2ocl-either"]["accuracy"]
    assert answers(tmp_path / "all", "ncm") == answers(tmp_path / "one", "f2ocl")
