"""One run (method, data set, backbone, seed) in one process; it writes one JSON file and the predictions next to it.

    python -m benchmarks.runs.runner --table table1 --method f2ocl --dataset digits --backbone micro_vit --groups 5

A run whose file exists is skipped. Figures are in per cent and seconds.
"""

import argparse
import json
import os
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import torch
from avalanche.benchmarks import CLScenario
from avalanche.core import SupervisedPlugin
from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import f2ocl_metrics
from avalanche_f2ocl.backbone.weights import load_vit
from avalanche_f2ocl.evaluation.anytime import area_under_curve, run_anytime
from avalanche_f2ocl.evaluation.by_groups import run_online
from avalanche_f2ocl.metrics.groups import AccuracyMatrix
from avalanche_f2ocl.models.resolved import resolved
from avalanche_f2ocl.options import Fit, HeadOptions
from avalanche_f2ocl.strategies.base import BaseStrategy
from benchmarks.runs.cache import QueryCache
from benchmarks.runs.costs import COSTS, Costs
from benchmarks.runs.methods import METHODS, make_strategy
from benchmarks.runs.provenance import device_name, peak_memory_bytes, versions, weights_sha256
from benchmarks.runs.side_heads import LastFeatures, SideHead, by_class
from benchmarks.runs.streams import STREAMS, make_stream
from benchmarks.runs.tables import RESULTS


class FinalAnswers(SupervisedPlugin):
    """Keeps the last evaluation's predicted classes, labels and chosen prompts (by class, or by row of a pool)."""

    def __init__(self):
        super().__init__()
        self.predictions, self.labels, self.keys = [], [], []

    def before_eval(self, strategy, **kwargs):
        self.predictions, self.labels, self.keys = [], [], []

    def after_eval_iteration(self, strategy, **kwargs):
        self.predictions += strategy.mb_output.argmax(1).tolist()
        self.labels += strategy.mb_labels.tolist()
        prediction = strategy.mb_prediction
        if prediction.key_rows is not None:
            self.keys += strategy.model.class_ids[prediction.key_rows[:, 0]].tolist()
        elif prediction.pool_rows is not None:
            self.keys += prediction.pool_rows.flatten().tolist()


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", required=True, help="folder under benchmarks/results")
    parser.add_argument("--method", required=True, choices=METHODS)
    parser.add_argument(
        "--dataset",
        required=True,
        help="'cifar100', 'imagenet-r', 'cub200', 'tiny-imagenet', 'imagenet-a', 'digits', or a folder or zip",
    )
    parser.add_argument("--backbone", required=True, help="timm name with tag, or 'micro_vit'")
    parser.add_argument("--weights", help="local checkpoint")
    parser.add_argument("--image-size", type=int)
    parser.add_argument(
        "--fit", choices=get_args(Fit), default="auto", help="of photographs to squares; tables before had squash"
    )
    parser.add_argument("--groups", type=int, default=10)
    parser.add_argument("--train-per-class", type=int)
    parser.add_argument("--test-per-class", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device")
    parser.add_argument("--options", type=json.loads, default={}, help="more of the strategy's options, as JSON")
    parser.add_argument("--stream", choices=STREAMS, default="groups", help="others have domains or one group")
    parser.add_argument("--every", type=int, help="accuracy at any time, every so many samples, instead of by groups")
    parser.add_argument("--held-out", type=int, help="training images of each class that stand for the test images")
    parser.add_argument("--heads", type=json.loads, default={}, help="head options by name, more heads on the training")
    parser.add_argument("--eval-keys", type=int, nargs="+", help="numbers of keys the trained model is evaluated with")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--cache", type=Path, help="folder that keeps unprompted embeddings between runs")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    return parser.parse_args(argv)


def result_path(args: argparse.Namespace) -> Path:
    return args.results / args.table / f"{args.method}-{Path(args.dataset).stem}-{args.backbone}-s{args.seed}.json"


def per_cent(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else round(100 * value, 4)


def prompt_norm(strategy: BaseStrategy) -> float | None:
    """Mean length of a prompt's token, over tokens and prompts."""
    pool = getattr(strategy.model, "pool", None)
    if pool is None:
        return None
    return round(pool.used("prompts").detach().norm(dim=2).mean().item(), 4)


def accuracy_by_keys(strategy: BaseStrategy, benchmark: CLScenario, counts: list[int]) -> dict[int, float]:
    """A_n of a trained model by the number of keys K whose prompts are concatenated for a prediction."""
    matrix = next(m for m in strategy.evaluator.metrics if isinstance(m, AccuracyMatrix))
    strategy.evaluator.metrics = [matrix]
    A_n, trained_with = {}, strategy.model.config
    for count in counts:
        strategy.model.config = replace(trained_with, keys=count)
        strategy.eval(benchmark.test_stream)
        A_n[count] = per_cent(matrix.result())
    strategy.model.config = trained_with
    return A_n


def run(args: argparse.Namespace) -> dict[str, tuple[dict, np.ndarray, np.ndarray]]:
    """Carries out a run; returns by method its record, and the final predictions and labels of the test images."""
    benchmark = make_stream(args)
    vit, answers = load_vit(args.backbone, args.weights, args.image_size), FinalAnswers()
    matrix, *others = f2ocl_metrics()
    evaluator = EvaluationPlugin(matrix, *others)
    given = {"seed": args.seed, "device": args.device, **args.options}
    strategy = make_strategy(args.method, backbone=vit, plugins=[answers], evaluator=evaluator, **given)
    costs = Costs(strategy)
    checksum = weights_sha256(args.backbone, args.weights, vit)
    backbone = strategy.model.backbone
    if args.cache is not None:
        # Whatever changes an unprompted embedding is in the name.
        parts = [checksum[:12], backbone.image_size, backbone.readout, Path(args.dataset).stem]
        parts += [str(backbone.dtype).removeprefix("torch.")] if backbone.dtype != torch.float32 else []
        cache = QueryCache(backbone, args.cache / ("-".join(map(str, parts)) + ".npz"))
    last = LastFeatures(backbone) if args.heads else None
    heads = {name: SideHead(HeadOptions(**o), backbone, last, args.seed) for name, o in args.heads.items()}
    evaluator.metrics = [matrix, *heads.values(), *others]
    result = run_stream(strategy, benchmark, args)
    # With side heads, or embeddings of earlier runs, the costs would not be those of the method.
    spent = dict.fromkeys(COSTS) if heads or args.cache is not None else costs.figures()
    if args.cache is not None:
        cache.save()
    device = strategy.device
    shared = {
        "dataset": Path(args.dataset).stem,
        "backbone": args.backbone,
        "weights_sha256": checksum,
        "image_size": backbone.image_size,
        "fit": args.fit,
        "train_per_class": args.train_per_class,
        "test_per_class": args.held_out or args.test_per_class,
        "seed": args.seed,
        "versions": versions(),
        "resolved": resolved(backbone, strategy.model.head),
        "device": device_name(device),
    }
    config = {"stream": args.stream, "groups": args.groups, "held_out": args.held_out}
    config |= {"cached_queries": args.cache is not None}
    config |= {name: value for name, value in strategy.options.items() if name != "seed"}
    histogram = dict(sorted(Counter(answers.keys).items())) if answers.keys else None
    record = {
        "method": args.method,
        **shared,
        "config": config,
        **result,
        "prompt_norm": prompt_norm(strategy),
        "key_histogram": histogram,
        "A_n_by_keys": accuracy_by_keys(strategy, benchmark, args.eval_keys) if args.eval_keys else None,
        "peak_memory_bytes": peak_memory_bytes(device),
        **spent,
    }
    records = {args.method: (record, *by_class(answers, benchmark))}
    for name, head in heads.items():
        predictions, labels = by_class(head, benchmark)
        # What is not the head's own is the same for every head of the training, or was not measured.
        own = result | {"config": config | args.heads[name] | {"trained_with": args.method}}
        if args.every is None:
            own |= {"T": in_per_cent(head.T)} | {figure: per_cent(value) for figure, value in head.figures.items()}
            own |= {"UB": None, "random_key": None}
        else:
            area = area_under_curve(result["samples"], head.accuracies)
            own |= {"accuracy": [per_cent(value) for value in head.accuracies]}
            own |= {"A_auc": per_cent(area), "A_last": per_cent(head.accuracies[-1])}
        records[name] = {"method": name, **shared, **own}, predictions, labels
    return records


def run_stream(strategy: BaseStrategy, benchmark: CLScenario, args: argparse.Namespace) -> dict:
    """Trains and evaluates; the result's figures, in per cent and seconds."""
    if args.every is not None:
        result = run_anytime(strategy, benchmark, args.every, progress=not args.quiet)
        curve = {"samples": result.samples.tolist(), "accuracy": [per_cent(value) for value in result.accuracy]}
        curve |= {"classes_seen": result.classes_seen.tolist()}
        figures = {"A_auc": per_cent(result.A_auc), "A_last": per_cent(result.A_last)}
        return curve | figures | {"seconds": round(result.seconds, 1)}
    result = run_online(strategy, benchmark, progress=not args.quiet)
    names = ("A_n", "A_n_samples", "F_n", "A_k", "UB", "random_key")
    figures = {name: per_cent(getattr(result, name)) for name in names}
    return {"T": in_per_cent(result.T), **figures, "seconds": round(result.seconds, 1)}


def in_per_cent(T: np.ndarray) -> list[list[float | None]]:
    return [[per_cent(value) for value in row] for row in T]


def main(argv: list[str] | None = None) -> None:
    args = parse_args(argv)
    warnings.filterwarnings("ignore", message="No loggers specified")
    path = result_path(args)
    if path.exists():
        return
    records = run(args)
    path.parent.mkdir(parents=True, exist_ok=True)
    # The method's own JSON says that the run is done, so it comes last and whole.
    for name in reversed(records):
        record, predictions, labels = records[name]
        path = result_path(argparse.Namespace(**{**vars(args), "method": name}))
        np.savez_compressed(path.with_suffix(".npz"), predictions=predictions.astype("i4"), labels=labels.astype("i4"))
        unfinished = path.with_suffix(".tmp")
        unfinished.write_text(json.dumps(record, indent=1) + "\n")
        os.replace(unfinished, path)


if __name__ == "__main__":
    main()
