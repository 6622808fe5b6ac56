"""All measurements that need a CUDA device, in one command.

    python -m benchmarks.gpu --out DIR --minutes 20

The parts run in the order of their value, each in its own process with its own time limit; time that a part does not
use goes to the next. Each part writes its results to DIR/<part>.json as soon as it has them, and its output to
DIR/output.log. If a part fails, the next one runs nevertheless; DIR/summary.json says how each part ended. --dry-run
runs all parts on a small scale on any machine.

On a machine without a network, --pack takes the folder that benchmarks.gpu.pack made, with missing libraries, data and
weights.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.gpu.plan import MINUTES, PARTS, limit
from benchmarks.gpu.unpack import unpack

TAIL = 1500
"""Number of characters of a failed part's output that go into the summary."""


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for results")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="for all parts together")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--data", help="zip or folder with CIFAR-100")
    parser.add_argument("--weights", help="of vit_tiny_patch16_224")
    parser.add_argument("--pack", type=Path, help="folder that benchmarks.gpu.pack made")
    parser.add_argument("--device", help="default CUDA if there is one, else CPU")
    parser.add_argument("--dry-run", action="store_true", help="all of it small")
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    start, environment = time.monotonic(), dict(os.environ)
    if args.pack is not None:
        unpacked = unpack(args.pack)
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [unpacked.site, environment.get("PYTHONPATH")]))
        args.data, args.weights = args.data or unpacked.data, args.weights or unpacked.weights
    given = [f"--{name}={getattr(args, name)}" for name in ("data", "weights", "device") if getattr(args, name)]
    given += ["--small"] if args.dry_run else []
    summary: dict[str, dict] = {}
    for name in args.parts:
        seconds = limit(name, args.parts, args.minutes, time.monotonic() - start)
        found = args.out / f"{name}.json"
        summary[name] = run_part(name, [f"--out={found}", *given], seconds, args.out, environment)
        summary[name]["failed_rows"] = failed_rows(found)
        print(name, *(f"{key}: {value}" for key, value in summary[name].items() if key != "end"), flush=True)
        (args.out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    if any(result["became"] != "done" or result["failed_rows"] for result in summary.values()):
        sys.exit(1)


def failed_rows(path: Path) -> list[str]:
    """Those of a part's results that are exceptions."""
    rows = json.loads(path.read_text()) if path.exists() else {}
    return [name for name, row in rows.items() if "failed" in row]


def command(name: str, arguments: list[str]) -> list[str]:
    """The command that runs a part."""
    return [sys.executable, "-W", "ignore", "-m", f"benchmarks.gpu.{name}", *arguments]


def run_part(name: str, arguments: list[str], seconds: float, out: Path, environment: dict[str, str]) -> dict:
    """Runs a part; returns ``done``, ``failed`` or ``out of time``, and the end of its output if it was not done."""
    start = time.monotonic()
    if seconds <= 0:
        return {"became": "out of time", "seconds": 0.0, "limit": 0.0}
    with (out / "output.log").open("ab+") as file:
        begin = file.seek(0, os.SEEK_END)
        process = subprocess.Popen(
            command(name, arguments), stdout=file, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
        try:
            became = "done" if process.wait(seconds) == 0 else "failed"
        except subprocess.TimeoutExpired:
            became = "out of time"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # includes the processes that it started
                process.wait()
        file.seek(begin)
        end = file.read().decode(errors="replace")[-TAIL:]
    result = {"became": became, "seconds": round(time.monotonic() - start, 1), "limit": round(seconds, 1)}
    return result if became == "done" else result | {"end": end}


if __name__ == "__main__":
    main()
