"""The paper's CIFAR-100 experiment: F2OCL and its baselines, online, in one pass and mini-batches of ten.

Without options it uses torchvision's CIFAR-100 (downloaded), a ViT-B/16 augreg in21k (downloaded by timm) at 224 px,
and ten groups of ten classes. A smaller run, which can be offline:

    python examples/online_cifar100.py --data cifar100.zip --backbone vit_tiny_patch16_224 \\
        --weights vit_tiny.safetensors --image-size 112 --train-per-class 20 --test-per-class 10

Several processes can share the work, with a GPU each:

    torchrun --nproc-per-node 2 examples/online_cifar100.py --methods f2ocl,vit-ncm
"""

import argparse
import time
import warnings

import torch
from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import (
    F2OCLModel,
    F2OCLStrategy,
    ViTNCM,
    class_incremental_stream,
    f2ocl_metrics,
    ranks,
    run_online,
)
from avalanche_f2ocl.backbone.weights import load_vit
from avalanche_f2ocl.baselines import ER, LwF
from avalanche_f2ocl.evaluation.table import result_table

BATCH_SIZE = 10
LONG = 10 * 60  # seconds from which a run counts as long
METHODS = {"f2ocl": F2OCLStrategy, "vit-ncm": ViTNCM, "er": ER, "lwf": LwF}


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--methods", type=lambda text: text.split(","), default=list(METHODS), help=f"of {','.join(METHODS)}"
    )
    parser.add_argument("--data", default="cifar100", help="'cifar100', or a folder or zip with train/ and test/")
    parser.add_argument("--backbone", default="vit_base_patch16_224.augreg_in21k", help="timm name or 'micro_vit'")
    parser.add_argument("--weights", help="local checkpoint of the backbone")
    parser.add_argument("--image-size", type=int, help="side in pixels; default the backbone's own")
    parser.add_argument("--train-per-class", type=int, help="training images kept per class; default all")
    parser.add_argument("--test-per-class", type=int, help="test images kept per class; default all")
    parser.add_argument("--groups", type=int, default=10)
    parser.add_argument("--passes", type=int, default=1, help="optimiser steps per mini-batch")
    parser.add_argument("--er-images", type=int, default=200, help="images that ER stores")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", help="default CUDA if there is one, else CPU")
    args = parser.parse_args()
    unknown = set(args.methods) - set(METHODS)
    if unknown:
        parser.error(f"--methods {','.join(sorted(unknown))}: allowed are {','.join(METHODS)}")
    return args


def estimate_seconds(vit, stream, args, device) -> float:
    """Estimates the seconds of F2OCL's run from a few mini-batches with a temporary learner."""
    probe = F2OCLModel(vit, passes=args.passes).to(device)
    data = stream.train_stream[0].dataset
    items = [data[i] for i in range(min(BATCH_SIZE, len(data)))]
    images, labels = torch.stack([item[0] for item in items]), torch.tensor([item[1] for item in items])

    def seconds_per_image(step) -> float:
        step()  # warm up
        start = time.perf_counter()
        for _ in range(3):
            step()
        if device.type == "cuda":
            torch.cuda.synchronize()
        return (time.perf_counter() - start) / 3 / len(images)

    train = sum(len(e.dataset) for e in stream.train_stream)
    # After group i, the test images of groups 1 to i; two more forward passes each at the end for UB and random key.
    sizes = [len(e.dataset) for e in stream.test_stream]
    test = sum(size * (args.groups - group) for group, size in enumerate(sizes)) + sum(sizes)
    learning = seconds_per_image(lambda: probe.learn(images, labels))
    return train * learning + test * seconds_per_image(lambda: probe.predict(images))


def main():
    args = parse_args()
    warnings.filterwarnings("ignore", message="No loggers specified")
    first = ranks.start()
    device = torch.device(args.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    try:
        stream = class_incremental_stream(
            args.data, args.groups, args.seed, args.train_per_class, args.test_per_class
        )
        vit = load_vit(args.backbone, args.weights, args.image_size)
    except (OSError, ValueError, TypeError) as error:
        raise SystemExit(
            f"{error}\n\nWithout network use local files: --data FOLDER_OR_ZIP, and --weights FILE --backbone NAME "
            "or --backbone micro_vit (bundled)."
        ) from error

    seconds = estimate_seconds(vit, stream, args, device)
    if seconds > LONG and first:
        print(
            f"On {device.type} this will take about {seconds / 60:.0f} minutes for F2OCL, and less for the others. "
            "Shorter: --train-per-class, --test-per-class, --image-size 112, a smaller --backbone, or --device cuda.\n"
        )

    results = {}
    own = {"f2ocl": {"passes": args.passes}, "er": {"mem_size": args.er_images}}
    for name in args.methods:
        strategy = METHODS[name](
            backbone=vit,
            seed=args.seed,
            train_mb_size=BATCH_SIZE,
            device=device,
            evaluator=EvaluationPlugin(*f2ocl_metrics()),
            **own.get(name, {}),
        )
        results[name] = run_online(strategy, stream)

    if not first:
        return
    print(f"\n{args.backbone}, {strategy.model.backbone.image_size} px, {args.groups} groups, seed {args.seed}")
    print(f"{result_table(results)}")


if __name__ == "__main__":
    main()
