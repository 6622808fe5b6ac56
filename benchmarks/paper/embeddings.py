"""t-SNE of a few test images of a few classes, as each method represents them after the whole stream.

    python -m benchmarks.paper.embeddings -- --dataset DIR/cifar100.zip --backbone vit_tiny_patch16_224 \\
        --weights FILE --image-size 112 --train-per-class 50 --test-per-class 20

What follows ``--`` goes to the runner. As in the paper, images are represented by pixels; the ViT's unprompted
embedding; F2OCL's embedding under the prompt of the nearest key; and class probabilities of methods with a linear head.
The command writes
``results/embeddings/points.{json,csv,md}`` (the maps), ``separation.{json,csv,md}`` and ``embeddings.png``.
Separation is measured before t-SNE, by scikit-learn: silhouette (cosine distance), and how often the nearest
other image is of the same class.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from avalanche.benchmarks import CLScenario, split_online_stream
from matplotlib.figure import Figure
from sklearn.metrics import silhouette_score
from sklearn.model_selection import LeaveOneOut, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor
from tqdm import tqdm

from avalanche_f2ocl import class_incremental_stream
from avalanche_f2ocl.backbone.weights import load_vit
from avalanche_f2ocl.evaluation.drawing import draw_points, save
from avalanche_f2ocl.evaluation.plots import tsne
from avalanche_f2ocl.rng import generator
from avalanche_f2ocl.strategies.base import BaseStrategy
from benchmarks.runs import runner
from benchmarks.runs.methods import METHODS, make_strategy
from benchmarks.runs.tables import write_rows

TABLE = "embeddings"
DEFAULT_METHODS = ("f2ocl", "l2p-mask", "dualprompt-mask", "er500", "lwf")


def choose(benchmark: CLScenario, classes: int, images: int, seed: int) -> tuple[Tensor, Tensor]:
    """Random test images of random classes: ``(N, C, H, W)`` and ``(N,)``."""
    draw = generator(seed, "embeddings")
    data = torch.utils.data.ConcatDataset([experience.dataset for experience in benchmark.test_stream])
    targets = torch.tensor([int(label) for experience in benchmark.test_stream for label in experience.dataset.targets])
    ids = targets.unique()
    ids = ids[torch.randperm(len(ids), generator=draw)[:classes]].sort().values
    chosen = []
    for class_id in ids:
        own = (targets == class_id).nonzero().squeeze(1)
        chosen.append(own[torch.randperm(len(own), generator=draw)[:images]])
    index = torch.cat(chosen)
    return torch.stack([data[i][0] for i in index.tolist()]), targets[index]


def train(strategy: BaseStrategy, benchmark: CLScenario, name: str) -> None:
    for experience in tqdm(benchmark.train_stream, desc=name, unit="group"):
        online = split_online_stream([experience], strategy.train_mb_size, shuffle=False)
        strategy.train(online, eval_streams=[])


@torch.no_grad()
def represent(strategy: BaseStrategy, images: Tensor) -> Tensor:
    """A method's representation of images: embeddings ``(N, D)`` or, for linear heads, probabilities ``(N, C)``."""
    model = strategy.model
    prediction = model.predict_batch(images.to(model.device))
    if prediction.key_rows is None:
        return prediction.logits.softmax(1)
    return model.backbone.encode_tokens(prediction.tokens, model.pool.prompts[prediction.key_rows].flatten(1, 2))


def separation(points: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Silhouette in [-1, 1], and the leave-one-out accuracy of the nearest neighbour in per cent; cosine distance."""
    nearest = KNeighborsClassifier(1, metric="cosine", algorithm="brute")
    same = cross_val_score(nearest, points, labels, cv=LeaveOneOut()).mean()
    silhouette = silhouette_score(points, labels, metric="cosine")
    return {"silhouette": round(float(silhouette), 3), "nearest is of the class": round(100 * same, 1)}


def draw(maps: list[dict], path: Path) -> None:
    """A picture of the maps, four in a row."""
    names = list(dict.fromkeys(point["representation"] for point in maps))
    classes = sorted({point["class"] for point in maps})
    rows = -(-len(names) // 4)
    figure = Figure(figsize=(3 * min(4, len(names)), 3.3 * rows), layout="constrained")
    grid = list(figure.subplots(rows, min(4, len(names)), squeeze=False).flat)
    for axes, name in zip(grid, names, strict=False):
        own = [point for point in maps if point["representation"] == name]
        xy = np.array([(point["x"], point["y"]) for point in own])
        draw_points(axes, xy, [classes.index(point["class"]) for point in own])
        axes.set_title(name)
    for axes in grid[len(names) :]:
        axes.set_axis_off()
    save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=DEFAULT_METHODS)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--images", type=int, default=10, help="test images a class")
    parser.add_argument("--results", type=Path, default=runner.RESULTS)
    parser.add_argument("runner", nargs=argparse.REMAINDER, help="-- and the runner's arguments")
    args = parser.parse_args()
    passed_on = [argument for argument in args.runner if argument != "--"]
    run = runner.parse_args(["--table", TABLE, "--method", args.methods[0], *passed_on])
    benchmark = class_incremental_stream(run.dataset, run.groups, run.seed, run.train_per_class, run.test_per_class)
    images, labels = choose(benchmark, args.classes, args.images, run.seed)
    vit = load_vit(run.backbone, run.weights, run.image_size)
    seen = {"pixels": images.flatten(1).float()}
    for method in args.methods:
        strategy = make_strategy(method, backbone=vit, evaluator=None, seed=run.seed, device=run.device, **run.options)
        if "ViT" not in seen:
            seen["ViT"] = strategy.model.backbone.encode(images.to(strategy.device))
        train(strategy, benchmark, method)
        seen[method] = represent(strategy, images)
    folder, labels = args.results / TABLE, labels.numpy()
    points = {name: x.cpu().double().numpy() for name, x in seen.items()}
    print(write_rows(folder, "separation", [{"representation": n} | separation(x, labels) for n, x in points.items()]))
    maps = []
    for name, embedding in points.items():
        xy = tsne(embedding, run.seed)
        maps += [
            {"representation": name, "class": benchmark.class_names[label], "x": round(x, 2), "y": round(y, 2)}
            for label, (x, y) in zip(labels.tolist(), xy.tolist(), strict=True)
        ]
    write_rows(folder, "points", maps)
    draw(maps, folder / "embeddings.png")


if __name__ == "__main__":
    main()
