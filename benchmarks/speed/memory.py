"""Whether memory grows with the stream."""

import subprocess
import sys
from pathlib import Path

import torch

from avalanche_f2ocl import F2OCLStrategy
from benchmarks.speed.setting import BATCH, Setting, random_stream, toy_vit, train


def memory_growth(setting: Setting) -> dict[str, float]:
    """Peak memory in the last thousand of many mini-batches by that in the first, in a process of its own."""
    few, many = setting.steps
    code = f"from benchmarks.speed.memory import peaks; print(*peaks({few}, {many}, {str(setting.device)!r}))"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    before, after = map(float, done.stdout.split()[-2:])
    return {"value": after / before, "megabytes_before": before, "megabytes_after": after}


def peaks(few: int, many: int, device: str) -> tuple[float, float]:
    """Peak megabytes of this process, or of the CUDA device, in the first and last ``few`` of ``many`` mini-batches.

    Of a toy ViT, whose own memory hides nothing.
    """
    strategy = F2OCLStrategy(backbone=toy_vit(), evaluator=None, device=device)
    stream, found = random_stream(BATCH * few), []
    for turn in range(many // few):
        _forget_peak(strategy.device)
        train(strategy, stream)
        if turn in (0, many // few - 1):
            found.append(_peak(strategy.device))
    return found[0], found[-1]


def _forget_peak(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    else:
        Path("/proc/self/clear_refs").write_text("5")


def _peak(device: torch.device) -> float:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e6
    # Not getrusage, which begins with the parent's peak and cannot be reset.
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1e3
