"""What it costs to see the same images again.

    python -m benchmarks.beyond.repetition --dataset digits --backbone micro_vit --groups 5 --seeds 3 4 5

Each head learns the stream once, twice and three times, and once with every image followed by two copies with noise of
standard deviation 3 of 255, as from a camera that stands still. "As new" is the same training, but copies count as new
evidence. The command writes ``results/repetition/<dataset>.{json,csv,md}`` with the accuracy after all classes in per
cent, as means over seeds; the tables go into benchmarks/README.md. Other arguments are those of the runner.
"""

import argparse
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from avalanche.benchmarks import CLScenario
from torch import Tensor
from torch.utils.data import DataLoader
from tqdm import tqdm

from avalanche_f2ocl import F2OCLModel, FrozenModel
from avalanche_f2ocl.backbone.weights import load_vit
from avalanche_f2ocl.state.distinct import DistinctCount
from benchmarks.runs import runner
from benchmarks.runs.methods import BEST_0_1, LAYERS_0_1
from benchmarks.runs.streams import make_stream
from benchmarks.runs.tables import publish

TABLE = "repetition"
BATCH, PASSES, COPIES, NOISE = 10, 3, 2, 3
METHODS: dict[str, Any] = {
    "vit-lda": lambda vit, seed: FrozenModel(vit, head="lda", seed=seed),
    "vit-ridge": lambda vit, seed: FrozenModel(vit, head="ridge", projection=2000, seed=seed),
    "vit-ridge-layers": lambda vit, seed: FrozenModel(
        vit, head="ridge", head_features="layers", projection=0, **LAYERS_0_1
    ),
    "best of version 0.1": lambda vit, seed: F2OCLModel.best(vit, seed=seed, **BEST_0_1),
}


def mini_batches(benchmark: CLScenario, copies: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
    """The training stream once, every image followed by its copies."""
    draw = torch.Generator().manual_seed(0)
    for experience in benchmark.train_stream:
        for images, labels, *_ in DataLoader(experience.dataset, batch_size=BATCH):
            if copies:
                images, labels = images.repeat_interleave(1 + copies, 0), labels.repeat_interleave(1 + copies)
                noise = NOISE * torch.randn(images.shape, generator=draw)
                noise[:: 1 + copies] = 0
                images = (images + noise).clamp(0, 255).round().to(torch.uint8)
            yield from zip(images.split(BATCH), labels.split(BATCH), strict=True)


def accuracy(model: Any, benchmark: CLScenario) -> float:
    """Accuracy on all test images, in per cent."""
    right = []
    for experience in benchmark.test_stream:
        for images, labels, *_ in DataLoader(experience.dataset, batch_size=100):
            right += (model.predict(images) == labels).tolist()
    return 100 * float(np.mean(right))


def both(model: Any, benchmark: CLScenario) -> tuple[float, float]:
    """Accuracy as it is, and with copies as new."""
    counted, learned = accuracy(model, benchmark), deepcopy(model.state_dict())
    for part in model.head.modules():
        if isinstance(part, DistinctCount):
            part.clear()
    model.load_state_dict(model.state_dict())  # solves again
    as_new = accuracy(model, benchmark)
    model.load_state_dict(learned)
    return counted, as_new


def measure(name: str, args: argparse.Namespace) -> dict[str, float]:
    """A row's figures of one seed."""
    benchmark, figures = make_stream(args), {}

    def make() -> Any:
        return METHODS[name](load_vit(args.backbone, args.weights, args.image_size), args.seed)

    def learn(model: Any, copies: int = 0) -> tuple[float, float]:
        for images, labels in mini_batches(benchmark, copies):
            model.learn(images, labels)
        return both(model, benchmark)

    model = make()
    for seen in range(1, PASSES + 1):
        figures[f"{seen}x"], figures[f"{seen}x, as new"] = learn(model)
    figures["noisy copies"], figures["noisy copies, as new"] = learn(make(), COPIES)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=[3])
    parser.add_argument("--results", type=Path, default=runner.RESULTS)
    args, others = parser.parse_known_args()
    run = runner.parse_args(["--table", TABLE, "--method", "f2ocl", *others])
    rows = []
    with tqdm(total=len(METHODS) * len(args.seeds), unit="run", disable=run.quiet) as bar:
        for name in METHODS:
            figures = []
            for run.seed in args.seeds:
                figures.append(measure(name, run))
                bar.update()
            rows.append({"method": name} | {key: round(np.mean([f[key] for f in figures]), 2) for key in figures[0]})
    page = runner.RESULTS.parent / "README.md" if args.results == runner.RESULTS else None
    publish(args.results / TABLE, Path(run.dataset).stem, rows, page)


if __name__ == "__main__":
    main()
