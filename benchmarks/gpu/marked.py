"""The tests that need a CUDA device: how many pass, and the messages of those that fail."""

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

from benchmarks.gpu.setting import Results, Setting

TESTS = Path(__file__).parents[2] / "tests"
QUICK = "backbone/test_cuda_graphs.py"
"""Tests that are enough for a small run, in which all tests are skipped."""


def main(argv: list[str] | None = None) -> None:
    setting = Setting.of(argv)
    results = Results(setting.out)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        where = TESTS / QUICK if setting.small else TESTS
        run_pytest(["-m", "gpu", "-p", "no:cacheprovider", "--tb=short", f"--junitxml={report}", str(where)])
        outcomes, problems = read_report(report)
    results["outcomes"] = outcomes
    results["problems"] = problems
    if problems or not outcomes:
        sys.exit(1)


def run_pytest(arguments: list[str]) -> None:
    """Runs pytest as a user does."""
    subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False)


def read_report(path: Path) -> tuple[dict[str, int], dict[str, str]]:
    """Numbers of tests by outcome, and messages of failed tests, from the report of ``pytest --junitxml``."""
    outcomes: Counter[str] = Counter()
    problems = {}
    for case in ElementTree.parse(path).iter("testcase"):
        marks = [child for child in case if child.tag in ("failure", "error", "skipped")]
        outcomes[marks[0].tag if marks else "passed"] += 1
        for mark in marks:
            if mark.tag != "skipped":
                problems[f"{case.get('classname')}::{case.get('name')}"] = f"{mark.get('message')}\n{mark.text or ''}"
    return dict(outcomes), problems


if __name__ == "__main__":
    main()
