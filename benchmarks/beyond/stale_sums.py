"""How much accuracy the head's sums lose because prompts move while the sums accumulate.

    python -m benchmarks.beyond.stale_sums --dataset digits --backbone micro_vit --groups 5 --seeds 3 4 5

After the stream the training mini-batches are encoded again under the final prompts, and a fresh head learns from them.
This is an oracle, since it has to keep the images. The command writes ``results/stale_sums/<dataset>.{json,csv,md}``
with A_n in per cent, as means over seeds; the tables go into benchmarks/README.md. Other arguments are those of the
runner.
"""

import argparse
from pathlib import Path

import numpy as np
from avalanche.benchmarks import CLScenario
from avalanche.training.plugins import EvaluationPlugin
from torch.utils.data import DataLoader
from tqdm import tqdm

from avalanche_f2ocl import F2OCLStrategy, f2ocl_metrics
from avalanche_f2ocl.backbone.weights import load_vit
from avalanche_f2ocl.evaluation.by_groups import run_online
from avalanche_f2ocl.heads.make import make_head
from benchmarks.runs import runner
from benchmarks.runs.methods import make_strategy
from benchmarks.runs.streams import make_stream
from benchmarks.runs.tables import publish

TABLE = "stale_sums"
SHARED, COMPENSATED = {"prompt_assignment": "shared"}, {"compensate_drift": True}
PROMPTS = {
    "of a sample's class": {},
    "of a sample's class, compensated": COMPENSATED,
    "of a sample's class, constant step": {"lr_decay": 0.0},
    "of a sample's class, constant step, compensated": {"lr_decay": 0.0} | COMPENSATED,
    "one for all": SHARED,
    "one for all, compensated": SHARED | COMPENSATED,
}
HEADS = {"ncm": {}, "ridge, ensemble": {"head": "ridge", "head_features": "ensemble", "projection": 0}}


def refresh(strategy: F2OCLStrategy, benchmark: CLScenario) -> None:
    """Gives the model a head that has seen the same mini-batches under the present prompts."""
    model = strategy.model
    head = make_head(model.config, model.plan.widths, model.config.seed)
    head.add_rows(len(model.class_ids))
    done, model.batches = model.batches, 0
    for experience in benchmark.train_stream:
        for images, labels, *_ in DataLoader(experience.dataset, batch_size=strategy.train_mb_size):
            batch = model.begin_batch(images.to(strategy.device), labels)
            head.update(model.training_features(batch)[1], batch.rows)
            model.batches += 1  # the election's draw depends on it
    assert model.batches == done
    model.head = head


def measure(args: argparse.Namespace, options: dict) -> tuple[float, float]:
    """A_n with the sums of the stream, and with sums made at its end."""
    benchmark, vit = make_stream(args), load_vit(args.backbone, args.weights, args.image_size)
    evaluator = EvaluationPlugin(*f2ocl_metrics())
    options = {"seed": args.seed, "device": args.device, **args.options, **options}
    strategy = make_strategy("f2ocl", backbone=vit, evaluator=evaluator, **options)
    streamed = run_online(strategy, benchmark, progress=not args.quiet).A_n
    refresh(strategy, benchmark)
    metrics = strategy.eval(benchmark.test_stream)
    return 100 * streamed, 100 * metrics["A_n/eval_phase/test_stream"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=[3])
    parser.add_argument("--results", type=Path, default=runner.RESULTS)
    args, others = parser.parse_known_args()
    run = runner.parse_args(["--table", TABLE, "--method", "f2ocl", *others])
    rows = []
    with tqdm(total=len(PROMPTS) * len(HEADS), unit="row", disable=run.quiet) as bar:
        for prompts, prompt_options in PROMPTS.items():
            for head, head_options in HEADS.items():
                pairs = []
                for run.seed in args.seeds:
                    pairs.append(measure(run, prompt_options | head_options))
                streamed, fresh = np.mean(pairs, axis=0).round(2).tolist()
                row = {"prompts": prompts, "head": head, "A_n": streamed, "A_n, sums of the end": fresh}
                rows.append(row | {"lost": round(fresh - streamed, 2)})
                bar.update()
    page = runner.RESULTS.parent / "README.md" if args.results == runner.RESULTS else None
    publish(args.results / TABLE, Path(run.dataset).stem, rows, page)


if __name__ == "__main__":
    main()
