"""One training step: its parts, its kernels, and the lines of code at which the host waits for the device."""

import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from avalanche_f2ocl import F2OCLStrategy
from benchmarks.gpu.setting import Results, Setting, tried
from benchmarks.speed import profile_step
from benchmarks.speed.setting import BATCH, random_stream, toy_vit, train, vit_base_224
from benchmarks.speed.timing import seconds

MOST = 20
"""Number of kernels listed."""
STRATEGIES = {"f2ocl": F2OCLStrategy, "best": F2OCLStrategy.best}


def main(argv: list[str] | None = None) -> None:
    setting = Setting.of(argv)
    results, make_vit = Results(setting.out), toy_vit if setting.small else vit_base_224
    for name, make in STRATEGIES.items():
        strategy = make(backbone=make_vit(), evaluator=None, device=setting.device)
        batches = 5 if setting.small else 30
        train(strategy, random_stream(BATCH * batches))
        results[f"{name}: the host waits, a mini-batch"] = tried(host_waits, strategy, batches)
        results[f"{name}: kernels"] = tried(kernels, strategy, batches)
        results[f"{name}: parts"] = tried(parts, strategy, batches)


def host_waits(strategy: Any, batches: int) -> dict[str, float]:
    """How often the host waits in a mini-batch, by the line of our code; without CUDA nothing is known of it."""
    if strategy.device.type != "cuda":
        return {}
    lines: Counter[str] = Counter()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = lambda message, *_: lines.update([place()] if "synchroniz" in str(message) else [])
            train(strategy, random_stream(BATCH * batches))
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return {line: count / batches for line, count in lines.most_common()}


def place() -> str:
    """The innermost running line of this package or of Avalanche."""
    own = [frame for frame in traceback.extract_stack() if "avalanche" in frame.filename]
    return f"{'/'.join(Path(own[-1].filename).parts[-3:])}:{own[-1].lineno}" if own else "elsewhere"


def kernels(strategy: Any, batches: int) -> dict[str, Any]:
    """Milliseconds a mini-batch: in total, in the device's kernels, and in the longest kernels by name."""
    stream = random_stream(BATCH * batches)
    whole = seconds(lambda: train(strategy, stream), strategy.device)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        train(strategy, stream)
    kind = strategy.device.type
    own = "self_cpu_time_total" if kind == "cpu" else "self_device_time_total"
    events = [event for event in profiler.key_averages() if event.device_type.name == kind.upper()]
    times = {event.key: getattr(event, own) / 1e3 / batches for event in events}
    longest = sorted(times.items(), key=lambda item: -item[1])[:MOST]
    found = {"whole_ms": 1e3 * whole / batches, "kernels_ms": sum(times.values())}
    return found | {"longest_ms": {name[:80]: round(taken, 4) for name, taken in longest if taken > 0}}


def parts(strategy: Any, batches: int) -> dict[str, float]:
    """Milliseconds of the step's parts, see :mod:`benchmarks.speed.profile_step`."""
    by_part, alone = profile_step.profile(strategy, batches)
    return {name: round(taken, 4) for name, taken in {**by_part, "not watched": alone}.items()}


if __name__ == "__main__":
    main()
