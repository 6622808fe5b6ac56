"""A stream without boundaries, and accuracy at any time: F2OCL compared with frozen features under the same head.

    python examples/blurry_stream.py [--train-per-class 60] [--figure runs/blurry.png]
"""

import argparse

from avalanche_f2ocl import F2OCLStrategy, FrozenBackbone, ViTNCM, run_anytime, si_blurry_stream
from avalanche_f2ocl.evaluation.plots import plot_anytime

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--train-per-class", type=int, help="default all, about 144")
parser.add_argument("--figure", default="runs/blurry.png")
args = parser.parse_args()

stream = si_blurry_stream("digits", tasks=5, disjoint=0.5, blur=0.1, train_per_class=args.train_per_class)
head = {"head": "ridge", "head_features": "layers", "projection": 0}
strategies = {
    "F2OCL, recommended": F2OCLStrategy.best(backbone="micro_vit", evaluator=None),
    "frozen, ridge": FrozenBackbone(backbone="micro_vit", evaluator=None, **head),
    "frozen, class means": ViTNCM(backbone="micro_vit", evaluator=None),
}
results = {name: run_anytime(strategy, stream, every=100) for name, strategy in strategies.items()}
for name, result in results.items():
    print(f"{name}: A_auc {100 * result.A_auc:.1f} %, A_last {100 * result.A_last:.1f} %")
plot_anytime(results, args.figure)
print(f"Curves: {args.figure}")
