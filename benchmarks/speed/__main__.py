"""Speed compared with the time that cannot be avoided: ``benchmarks/results/speed/speed-<device>.json`` and a table.

    python -m benchmarks.speed

Ratios are medians over turns in one process. Weights and images are random, which does not affect times; ``--dataset``
takes the images of the whole protocol from a zip or folder. Rows that a machine cannot run are marked as such.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import avalanche
import timm
import torch

from avalanche_f2ocl.backbone.devices import default_device
from benchmarks.runs.provenance import device_name
from benchmarks.runs.runner import RESULTS
from benchmarks.runs.tables import insert
from benchmarks.speed import memory, rows
from benchmarks.speed.setting import Setting, toy_vit, vit_base_224, vit_tiny_112


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Args:
        what, against: what is measured and what it is compared with, in words.
        measure: gives ``value`` and the figures that it was computed from.
        goal: largest ``value``, or the smallest if ``at_least``.
        setting: changes to the default setting.
        only: type of device that can run the row; None for any.
    """

    what: str
    against: str
    measure: Callable[[Setting], dict[str, float]]
    goal: float
    setting: dict
    at_least: bool = False
    only: str | None = None
    unit: str = "x"

    def met(self, value: float) -> bool:
        return value >= self.goal if self.at_least else value <= self.goal


BASE, TINY, TOY = ({"make_vit": make} for make in (vit_base_224, vit_tiny_112, toy_vit))
STEP, PASSES = "strategy.train, ViT-B/16, batch 10", "its two passes, bare"
ROWS = {
    "eager": Row(STEP, "plain eager autocast PyTorch", rows.eager_autocast_by_strategy, 6, BASE, True, "cuda"),
    "arithmetic": Row(STEP, "its arithmetic at the measured rate", rows.share_of_arithmetic, 0.3, BASE, True, "cuda"),
    "l2p": Row(STEP, "eager L2P on the same ViT", rows.l2p_by_strategy, 1, BASE, True, "cuda"),
    "protocol": Row("whole CIFAR-100 protocol, ViT-B/16", "-", rows.whole_protocol, 60,
                    BASE | {"images": 50_000}, only="cuda", unit="s"),
    "step": Row("strategy.train, ViT-Ti, 112 px", "the step's own passes, bare", rows.strategy_by_bare_step, 1.1,
                TINY, only="cpu"),
    "evaluation": Row("evaluation, ViT-Ti, 112 px", PASSES, rows.evaluation_by_bare, 1.1, TINY, only="cpu"),
    "evaluation-cuda": Row("evaluation, ViT-B/16", PASSES, rows.evaluation_by_bare, 1.1,
                           BASE | {"images": 2048}, only="cuda"),
    "avalanche": Row("online stream through Avalanche, toy ViT", "loop over tensors", rows.avalanche_overhead, 1.5,
                     TOY | {"batches": 100}, unit="ms a mini-batch"),
    "classes": Row("step at 10,000 classes, ViT-B/16", "at 100", rows.step_with_many_classes, 1.2,
                   BASE | {"batches": 2}),
    "memory": Row("peak memory, last 1,000 of 10,000 mini-batches", "first 1,000", memory.memory_growth, 1.01, TOY),
}  # fmt: skip


def measure(names: list[str], setting: Setting) -> dict[str, dict]:
    """Results by row, or the reason why this device cannot run a row."""
    results: dict[str, dict] = {}
    for name in names:
        row = ROWS[name]
        if row.only not in (None, setting.device.type):
            results[name] = {"not_run": f"needs {row.only}"}
        else:
            measured = row.measure(replace(setting, **row.setting))
            results[name] = {key: round(value, 4) for key, value in measured.items()}
        print(name, results[name], flush=True)
    return results


def table(results: dict[str, dict]) -> str:
    """Markdown."""
    lines = ["| | against | measured | goal |", "|---|---|---:|---:|"]
    for name, row in ROWS.items():
        result = results.get(name, {"not_run": "not asked for"})
        sign = "at least" if row.at_least else "at most"
        if "not_run" in result:
            measured = f"not run ({result['not_run']})"
        else:
            measured = f"{result['value']:.3g} {row.unit}" + ("" if row.met(result["value"]) else ", **missed**")
        lines.append(f"| {row.what} | {row.against} | {measured} | {sign} {row.goal:g} {row.unit} |")
    return "\n".join(lines)


def machine(device: torch.device) -> dict[str, object]:
    """The machine that the figures hold for."""
    libraries = {library.__name__: library.__version__ for library in (torch, timm, avalanche)}
    return {"device": device_name(device), "threads": torch.get_num_threads(), **libraries}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--device", help="default CUDA if there is one, else CPU")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--dataset", type=Path, help="CIFAR-100, or a part of it, for the whole protocol")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    device = default_device(args.device)
    path = args.results / "speed" / f"speed-{device.type}.json"
    kept = json.loads(path.read_text())["rows"] if path.exists() else {}
    setting = Setting(device, vit_tiny_112, repeats=args.repeats, dataset=args.dataset)
    results = kept | measure(args.rows, setting)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"machine": machine(device), "rows": results}, indent=1) + "\n")
    text = table(results)
    path.with_suffix(".md").write_text(text + "\n")
    print(text)
    if args.results == RESULTS:
        insert(RESULTS.parent / "README.md", f"speed-{device.type}", text)


if __name__ == "__main__":
    main()
