"""Many runs of the runner in parallel, one process for each."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tqdm import tqdm


def launch_all(runs: Sequence[Sequence[str]], jobs: int, publish: Callable[[], None]) -> None:
    """Calls :func:`launch` and then ``publish()``, which publishes all results so far.

    Raises:
        SystemExit: a run failed; the other runs are done and published by then.
    """
    failed = launch(runs, jobs)
    publish()
    if failed:
        raise SystemExit(f"{failed} of {len(runs)} runs failed")


def launch(runs: Sequence[Sequence[str]], jobs: int = 1) -> int:
    """Runs ``python -m benchmarks.runs.runner`` with each list of arguments; returns how many failed.

    Args:
        runs: the runner's arguments.
        jobs: processes at a time; they share the cores, unless OMP_NUM_THREADS says how many each has.
    """
    threads = max(1, (os.cpu_count() or 1) // jobs)
    # Waiting threads sleep, so that CPU time counts only work.
    environment = {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE"} | os.environ

    def one(arguments: Sequence[str]) -> bool:
        command = [sys.executable, "-m", "benchmarks.runs.runner", "--quiet", *arguments]
        return subprocess.run(command, env=environment).returncode != 0

    with ThreadPoolExecutor(jobs) as pool:
        return sum(tqdm(pool.map(one, runs), total=len(runs), unit="run"))
