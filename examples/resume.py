"""A run that can be interrupted at any time and then started again.

    python examples/resume.py [--train-per-class 60] [--file runs/resume.safetensors]
"""

import argparse
from pathlib import Path

from avalanche.benchmarks import split_online_stream
from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import CheckpointPlugin, F2OCLStrategy, class_incremental_stream, f2ocl_metrics

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--train-per-class", type=int, help="default all, about 144")
parser.add_argument("--file", type=Path, default=Path("runs/resume.safetensors"))
args = parser.parse_args()
args.file.parent.mkdir(parents=True, exist_ok=True)

stream = class_incremental_stream("digits", groups=5, train_per_class=args.train_per_class)
strategy = F2OCLStrategy(
    backbone="micro_vit",
    evaluator=EvaluationPlugin(*f2ocl_metrics()),
    plugins=[CheckpointPlugin(args.file, every_batches=5)],
)
if strategy.resume(args.file, missing_ok=True):
    print(f"{args.file} knows {strategy.catching_up_batches} mini-batches: they are passed over.")
for i, experience in enumerate(stream.train_stream):
    strategy.train(split_online_stream([experience], 10, shuffle=False), eval_streams=[])
    results = strategy.eval(stream.test_stream[: i + 1])
    print(f"after group {i + 1}: A_n {100 * results['A_n/eval_phase/test_stream']:.2f} %")
