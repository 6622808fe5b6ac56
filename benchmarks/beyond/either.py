"""When class means under prompts should count: the choice of ``head_features="either"``, on held-out training images.

    python -m benchmarks.beyond.either --data-dir DIR --weights vit_tiny_patch16_224.safetensors

F2OCL learns a stream once for each data set and seed. At its end the held-out images are predicted by class means under
prompts, by those without, and by the sum of their similarities, of which F2OCL uses the last two. It goes by how many
standard deviations the sum was right more often before each mini-batch was learned; the first table shows which numbers
would have given the better choice. The second shows how often prompts that bring nothing would be used at some time of
a stream, since the counts are looked at after every mini-batch. If interrupted, the command continues where it stopped.
"""

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

import torch
from avalanche.benchmarks import CLScenario
from torch.nn import functional as F
from torch.utils.data import DataLoader

from avalanche_f2ocl.backbone.weights import load_vit
from avalanche_f2ocl.heads.either import DEVIATIONS
from avalanche_f2ocl.models.f2ocl import F2OCLModel
from avalanche_f2ocl.streams.online import online_stream
from benchmarks.beyond.encoded import write_once
from benchmarks.beyond.settings import DATASETS, DOMAINS, add_data_arguments, data_of
from benchmarks.runs import runner
from benchmarks.runs.methods import make_strategy
from benchmarks.runs.streams import make_stream
from benchmarks.runs.tables import to_readme, write_rows

TABLE, METHOD = "either", "f2ocl-either"
WEIGHTS = {"under prompts": (1.0, 0.0), "without": (0.0, 1.0), "both": (0.5, 0.5)}
"""Of the two heads, by the names of their accuracies."""
NUMBERS = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5)
"""Numbers of standard deviations whose chances are compared."""
LENGTHS = (30, 100, 300, 1000)
"""Numbers of samples that are right under one head only."""


def accuracy(model: F2OCLModel, benchmark: CLScenario, weights: tuple[float, float]) -> float:
    """Share of the test images that are predicted right if the heads have these weights."""
    vars(model.head)["weights"] = lambda solutions=None: torch.tensor(weights, dtype=torch.float64)
    right = total = 0
    for experience in benchmark.test_stream:
        for images, labels, *_ in DataLoader(experience.dataset, batch_size=100):
            right += int((model.predict(images) == labels).sum())
            total += len(labels)
    return right / total


def measure(args: argparse.Namespace) -> dict[str, float]:
    """Accuracies by :data:`WEIGHTS` in per cent, and how often prompts helped and harmed before learning."""
    benchmark, vit = make_stream(args), load_vit(args.backbone, args.weights, args.image_size)
    options: dict[str, Any] = {"seed": args.seed, **args.options}
    strategy = make_strategy(METHOD, backbone=vit, evaluator=None, **options)
    strategy.train(online_stream(benchmark.train_stream, strategy.train_mb_size), eval_streams=[])
    model = strategy.model
    helped, harmed = (int(model.head.used(name).sum()) for name in ("helped", "harmed"))
    deviations = (helped - harmed) / max(1, helped + harmed) ** 0.5
    found = {"helped": helped, "harmed": harmed, "deviations": round(deviations, 2)}
    return found | {name: round(100 * accuracy(model, benchmark, by), 2) for name, by in WEIGHTS.items()}


def chance_of_use(deviations: float, samples: int) -> float:
    """Probability that prompts which help and harm equally often are used at some time of a stream, at most.

    After n of the samples that are right under one head only, b - c is a symmetric random walk of n steps. Here it is
    looked at after every sample, not only after every mini-batch.

    Args:
        deviations: number k of standard deviations; prompts are used while b - c > k sqrt(n).
        samples: the largest n.

    Example:
        >>> chance_of_use(1.0, 2)  # both of two samples
        0.25
    """
    differences = torch.arange(-samples, samples + 1)
    unused = (differences == 0).double()
    for n in range(1, samples + 1):
        up, down = F.pad(unused[:-1], (1, 0)), F.pad(unused[1:], (0, 1))
        unused = (up + down) / 2 * (differences <= deviations * n**0.5)
    return 1 - unused.sum().item()


def publish(results: Path) -> None:
    """Writes the tables of results so far and of chances."""
    rows = []
    for path in sorted((results / TABLE).glob("*-s*.json")):
        data, _, seed = path.stem.rpartition("-s")
        found = json.loads(path.read_text())
        chosen = "both" if found["deviations"] > DEVIATIONS else "without"
        rows.append({"data": data, "seed": seed} | {key: str(value) for key, value in found.items()})
        rows[-1] |= {"chosen": chosen}
    if not rows:
        return
    chances = [
        {"deviations": f"{k:g}"} | {f"{n} samples": f"{100 * chance_of_use(k, n):.1f}" for n in LENGTHS}
        for k in NUMBERS
    ]
    tables = {"table": rows, "chances": chances}
    text = "\n\n".join(write_rows(results / TABLE, name, lines) for name, lines in tables.items())
    print(text)
    to_readme(results, TABLE, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_arguments(parser, (*DATASETS, DOMAINS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[11, 12, 13])
    parser.add_argument("--precision", default="float32", choices=("bfloat16", "float32"), help="of the frozen ViT-Ti")
    args = parser.parse_args()
    data = data_of(args)
    for seed in args.seeds:
        for name in args.datasets:
            options = {"precision": "float32" if name == "digits" else args.precision}
            run = ["--table", TABLE, "--method", METHOD, "--seed", str(seed), "--options", json.dumps(options)]
            trial = partial(measure, runner.parse_args([*data[name], *run]))
            write_once(args.results / TABLE / f"{name}-s{seed}.json", trial)
    publish(args.results)


if __name__ == "__main__":
    main()
