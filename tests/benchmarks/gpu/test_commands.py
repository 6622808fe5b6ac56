"""The one command for a machine with a CUDA device: dry, and with parts that fail or hang."""

import importlib
import json
import os
import sys
import time
from pathlib import Path

import pytest
import torch

from benchmarks.gpu import __main__ as command
from benchmarks.gpu import marked, processes, protocol
from benchmarks.gpu.plan import PARTS
from benchmarks.gpu.speed import Speed

REPORT = """<testsuites><testsuite><testcase classname="a" name="b"/>
<testcase classname="a" name="c"><skipped/></testcase>
<testcase classname="a" name="d"><failure message="wrong">line 3</failure></testcase></testsuite></testsuites>"""


@pytest.fixture
def here(monkeypatch):
    """Parts run in this process; what they would start is not."""

    def run_part(name, arguments, seconds, out, environment):
        importlib.import_module(f"benchmarks.gpu.{name}").main(arguments)
        return {"became": "done", "seconds": 0.0, "limit": seconds}

    def run_pytest(arguments):
        [path] = [argument.removeprefix("--junitxml=") for argument in arguments if "junitxml" in argument]
        Path(path).write_text(REPORT.replace("failure", "skipped"))

    def start_all(setting, folder):
        for rank in range(processes.PROCESSES):
            torch.save(processes.learn(setting), Path(folder, f"learned-{rank}"))

    monkeypatch.setattr(command, "run_part", run_part)
    monkeypatch.setattr(marked, "run_pytest", run_pytest)
    monkeypatch.setattr(processes, "start_all", start_all)


def test_a_dry_run_does_all_of_it_small(tmp_path, here):
    command.main(["--out", str(tmp_path), "--dry-run", "--device", "cpu"])
    found = {name: json.loads((tmp_path / f"{name}.json").read_text()) for name in PARTS}
    assert not any(summary["failed_rows"] for summary in json.loads((tmp_path / "summary.json").read_text()).values())
    assert found["marked"] == {"outcomes": {"passed": 1, "skipped": 2}, "problems": {}}
    assert found["parity"]["best cpu float32"]["same_answers"] == 100
    assert found["parity"]["best cpu bfloat16"]["logits_off"] > 0
    speed = found["speed"]
    assert speed.keys() == {"arithmetic", *Speed(SMALL).rows}
    assert 0 < speed["strategy.train"]["of_arithmetic"] < 1 and speed["eager float32"]["ms"] > 0
    assert 0 < found["protocol"]["vit-ncm"]["A_n"] <= 100
    assert {"loss", "backward", "not watched"} <= found["step"]["f2ocl: parts"].keys()
    assert found["step"]["f2ocl: kernels"]["kernels_ms"] > 0
    together = found["processes"]["processes"]
    assert together["same_bits"] and together["off_from_one_process"] == 0 and together["by"] == "none"


class SMALL:
    small, device = True, torch.device("cpu")


def test_a_row_that_fails_leaves_the_others_and_fails_the_command(tmp_path, here, monkeypatch):
    monkeypatch.setattr(protocol.runner, "run", lambda args: 1 / 0)
    with pytest.raises(SystemExit):
        command.main(["--out", str(tmp_path), "--dry-run", "--device", "cpu", "--parts", "protocol"])
    assert json.loads((tmp_path / "summary.json").read_text())["protocol"]["failed_rows"] == ["vit-ncm"]
    assert json.loads((tmp_path / "protocol.json").read_text())["vit-ncm"]["failed"].startswith("ZeroDivisionError")


def test_what_pytest_reports(tmp_path):
    (tmp_path / "report.xml").write_text(REPORT)
    outcomes, problems = marked.read_report(tmp_path / "report.xml")
    assert outcomes == {"passed": 1, "skipped": 1, "failure": 1} and problems == {"a::d": "wrong\nline 3"}


PROGRAMS = {
    "marked": "import sys; print('broken'); sys.exit(3)",
    "parity": "import subprocess, sys; subprocess.run(['sleep', '60'])",
    "speed": "print('well')",
}


def test_parts_that_fail_or_hang_leave_the_others_their_time(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "command", lambda name, _: [sys.executable, "-S", "-c", PROGRAMS[name]])
    start = time.monotonic()
    with pytest.raises(SystemExit):
        command.main(["--out", str(tmp_path), "--minutes", "0.1", "--parts", *PROGRAMS])
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert [summary[name]["became"] for name in PROGRAMS] == ["failed", "out of time", "done"]
    assert summary["marked"]["end"] == "broken\n" and summary["parity"]["end"] == ""
    assert (tmp_path / "output.log").read_text() == "broken\nwell\n"  # of all parts
    assert time.monotonic() - start < 30
    # What the first part left of its time is the second's.
    assert summary["parity"]["seconds"] > 6 * PARTS["parity"].minutes / sum(PARTS[name].minutes for name in PROGRAMS)


def test_there_is_no_part_without_a_file_and_none_too_much():
    folder = Path(command.__file__).parent
    assert all((folder / f"{name}.py").exists() for name in PARTS)
    assert os.path.isdir(marked.TESTS) and (marked.TESTS / marked.QUICK).exists()
