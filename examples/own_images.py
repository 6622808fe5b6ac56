"""A folder (or zip) of your own pictures: train/<class>/*, and test/<class>/* to measure the accuracy.

    python examples/own_images.py pictures [--backbone vit_small_patch16_224.augreg_in21k] [--groups 3]
"""

import argparse
import warnings

from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import F2OCLStrategy, class_incremental_stream, f2ocl_metrics, run_online
from avalanche_f2ocl.evaluation.table import result_table

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("pictures", help="folder or zip")
parser.add_argument("--backbone", default="vit_small_patch16_224.augreg_in21k", help="timm name, or micro_vit")
parser.add_argument("--groups", type=int, default=3, help="of classes, one after the other")
args = parser.parse_args()
warnings.filterwarnings("ignore", message="No loggers specified")

stream = class_incremental_stream(args.pictures, groups=args.groups)
strategy = F2OCLStrategy.best(backbone=args.backbone, evaluator=EvaluationPlugin(*f2ocl_metrics()))
print(result_table({"F2OCL": run_online(strategy, stream)}))

strategy.model.class_names = stream.class_names
strategy.save("learned.safetensors")
print("Saved: learned.safetensors. Try: f2ocl predict learned.safetensors PICTURE")
