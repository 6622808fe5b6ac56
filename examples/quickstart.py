"""F2OCL and the recommended settings beside ViT-NCM, on handwritten digits, offline, in about a minute on a laptop.

    python examples/quickstart.py [--seed 0] [--train-per-class 40] [--figure runs/quickstart.png]
"""

import argparse
import warnings

from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import F2OCLStrategy, ViTNCM, class_incremental_stream, f2ocl_metrics, ranks, run_online
from avalanche_f2ocl.evaluation.plots import plot_accuracy_matrices
from avalanche_f2ocl.evaluation.table import result_table

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--train-per-class", type=int, help="default all, about 144")
parser.add_argument("--figure", default="runs/quickstart.png")
args = parser.parse_args()
warnings.filterwarnings("ignore", message="No loggers specified")
first = ranks.start()  # under torchrun the processes share the work

stream = class_incremental_stream("digits", groups=5, seed=args.seed, train_per_class=args.train_per_class)
groups = [sorted(experience.classes_in_this_experience) for experience in stream.train_stream]
if first:
    print("Digits arrive in five groups,", groups, "- ten images at a time, each seen once, none kept.\n")

results = {}
for name, make in {"ViT-NCM": ViTNCM, "F2OCL": F2OCLStrategy, "recommended": F2OCLStrategy.best}.items():
    strategy = make(backbone="micro_vit", seed=args.seed, evaluator=EvaluationPlugin(*f2ocl_metrics()))
    results[name] = run_online(strategy, stream, progress=name)

if not first:
    raise SystemExit
print(f"\n{result_table(results)}\n")
print("A_n: accuracy over all groups at the end (%). F_n: forgetting. A_k: how often the nearest key is right,")
print("that is, of the image's class. UB: A_n if every key were right. random_key: A_n if keys were random.\n")

gain = {name: 100 * (result.A_n - results["ViT-NCM"].A_n) for name, result in results.items()}
print(f"Against ViT-NCM: F2OCL {gain['F2OCL']:+.1f} points, recommended settings {gain['recommended']:+.1f} points.")
print("F2OCL's prompts are used only where they tell classes apart better than the frozen backbone does,")
print("as they do with a hundred classes and a larger backbone: see docs/results.md.")

plot_accuracy_matrices(results, args.figure)
print(f"""
The picture {args.figure} shows the accuracy on each group after training on each.

What to do next:
  your own pictures    .venv/bin/f2ocl train pictures --out learned.safetensors
  in Python            docs/first_hour.md
  other methods        .venv/bin/python -m benchmarks.compare --dataset digits --backbone micro_vit""")
