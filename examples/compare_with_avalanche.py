"""F2OCL compared with one of Avalanche's own strategies, on the same stream and the same frozen backbone.

    python examples/compare_with_avalanche.py [--train-per-class 40]
"""

import argparse
import warnings

import torch
from avalanche.training import Naive
from avalanche.training.plugins import EvaluationPlugin
from torch import nn

from avalanche_f2ocl import F2OCLStrategy, class_incremental_stream, f2ocl_metrics, run_online
from avalanche_f2ocl.backbone import load_backbone
from avalanche_f2ocl.evaluation.table import result_table

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--train-per-class", type=int, help="default all, about 144")
args = parser.parse_args()
warnings.filterwarnings("ignore", message="No loggers specified")
stream = class_incremental_stream("digits", groups=5, seed=0, train_per_class=args.train_per_class)


class FrozenViTWithHead(nn.Module):
    """Any model that Avalanche's strategies can train."""

    def __init__(self, classes: int):
        super().__init__()
        self.backbone = load_backbone("micro_vit")
        self.head = nn.Linear(self.backbone.embed_dim, classes)

    def forward(self, images):
        return self.head(self.backbone.encode(images))


model = FrozenViTWithHead(classes=10)
naive = Naive(
    model=model,
    optimizer=torch.optim.SGD(model.head.parameters(), lr=0.01),
    train_mb_size=10,
    eval_mb_size=128,
    evaluator=EvaluationPlugin(*f2ocl_metrics()),
)
f2ocl = F2OCLStrategy(backbone="micro_vit", evaluator=EvaluationPlugin(*f2ocl_metrics()))
print(result_table({"Naive": run_online(naive, stream), "F2OCL": run_online(f2ocl, stream)}))
