import json

import numpy as np
import pytest

from avalanche_f2ocl.metrics import average_accuracy, forgetting
from benchmarks.runs import runner
from benchmarks.runs.methods import METHODS, ON_FROZEN_FEATURES, make_strategy

KEYS = {
    "method", "dataset", "backbone", "weights_sha256", "image_size", "fit", "train_per_class", "test_per_class", "seed",
    "config", "versions", "resolved", "device", "T", "A_n", "A_n_samples", "F_n", "A_k", "UB", "random_key",
    "prompt_norm", "key_histogram", "A_n_by_keys", "seconds", "peak_memory_bytes",
    "train_seconds_per_1000", "test_seconds_per_1000", "kept_bytes",
}  # fmt: skip


def arguments(method, results, *more):
    return [
        "--table", "t", "--method", method, "--dataset", "digits", "--backbone", "micro_vit", "--groups", "5",
        "--train-per-class", "6", "--test-per-class", "5", "--quiet", "--results", str(results), *more,
    ]  # fmt: skip


# Of the others on frozen features, which differ in options alone, some: tests/test_rivals.py has all.
RUN = [*(name for name in METHODS if name not in ON_FROZEN_FEATURES), "ranpac-task", "fecam"]


@pytest.mark.parametrize("method", RUN)
def test_a_run_is_one_file_with_predictions_beside_it(method, tmp_path):
    few = ["--train-per-class", "4", "--test-per-class", "2"]
    # A ridge regression on fewer features is solved sooner.
    more = ["--options", '{"projection": 40}'] if "ridge" in method or "best" in method or "ranpac" in method else []
    runner.main(arguments(method, tmp_path, *few, *more))
    path = tmp_path / "t" / f"{method}-digits-micro_vit-s0.json"
    record = json.loads(path.read_text())
    assert set(record) == KEYS and record["method"] == method
    T = np.array([[np.nan if v is None else v for v in row] for row in record["T"]])
    assert np.isnan(T[np.triu_indices(5, 1)]).all() and not np.isnan(T[np.tril_indices(5)]).any()
    assert record["A_n"] == pytest.approx(average_accuracy(T), abs=1e-3)
    assert record["F_n"] == pytest.approx(forgetting(T), abs=1e-3)
    with np.load(path.with_suffix(".npz")) as answers:
        assert answers["labels"].tolist() == sorted(list(range(10)) * 2)
        share = 100 * (answers["predictions"] == answers["labels"]).mean()
    assert record["A_n_samples"] == pytest.approx(share, abs=1e-3)
    one_prompt = "best" in method or method == "random-prompt-ridge-ensemble"
    with_prompts = method.startswith(("f2ocl", "random")) and not one_prompt
    for name in ("A_k", "UB", "random_key"):
        assert (record[name] is not None) == with_prompts, name
    assert (record["prompt_norm"] is not None) == (with_prompts or one_prompt)
    chosen = 1 if with_prompts or method.startswith(("dualprompt", "mvp")) else 5 if method.startswith("l2p") else 0
    assert sum((record["key_histogram"] or {}).values()) == 20 * chosen
    assert "backbone" not in record["config"] and record["config"]["train_mb_size"] == 10
    text = path.read_text()
    assert str(tmp_path) not in text and "/" not in record["dataset"]


def test_the_configuration_is_whole_and_flat(tmp_path):
    runner.main(arguments("f2ocl-literal", tmp_path, "--options", '{"lr": 0.05}'))
    config = json.loads((tmp_path / "t" / "f2ocl-literal-digits-micro_vit-s0.json").read_text())["config"]
    assert config["lr"] == 0.05 and config["prompt_assignment"] == "label" and config["groups"] == 5
    assert config["temperature"] == 0.2 and not any(isinstance(v, dict) for v in config.values())
    runner.main(arguments("er500", tmp_path))
    config = json.loads((tmp_path / "t" / "er500-digits-micro_vit-s0.json").read_text())["config"]
    assert config["mem_size"] == 500 and "lr" in config


def test_a_run_that_is_done_is_skipped_and_a_broken_one_leaves_no_file(tmp_path, monkeypatch):
    runner.main(arguments("vit-ncm", tmp_path))
    path = tmp_path / "t" / "vit-ncm-digits-micro_vit-s0.json"
    before = path.stat().st_mtime_ns

    def fail(args):
        raise RuntimeError("killed")

    monkeypatch.setattr(runner, "run", fail)
    runner.main(arguments("vit-ncm", tmp_path))
    assert path.stat().st_mtime_ns == before
    with pytest.raises(RuntimeError):
        runner.main(arguments("lwf", tmp_path))
    assert not list((tmp_path / "t").glob("lwf*"))


def test_unknown_method():
    with pytest.raises(ValueError, match="method='f2oc': allowed are f2ocl,"):
        make_strategy("f2oc")


@pytest.mark.parametrize("method", ["f2ocl-best", "f2ocl-literal", "vit-ncm", "er200", "l2p"])
def test_figures_are_those_of_every_machine(method, vit):
    assert make_strategy(method, backbone=vit, evaluator=None).model.backbone.precision == "float32"
    other = make_strategy(method, backbone=vit, evaluator=None, precision="bfloat16")
    assert other.model.backbone.precision == "bfloat16"
