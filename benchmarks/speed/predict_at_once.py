"""How long the recommended settings take to predict after a mini-batch, and after a start from a file.

    python -m benchmarks.speed.predict_at_once --backbones vit_tiny_patch16_224 vit_base_patch16_224 --image-size 112

Weights and images are random, which does not change the arithmetic. Figures are milliseconds; repeated ones are
medians.
"""

import argparse
import platform
import tempfile
from pathlib import Path
from statistics import median

import timm
import torch
from torch import Tensor

from avalanche_f2ocl import F2OCLModel
from avalanche_f2ocl.backbone.weights import MICRO_VIT, load_vit
from benchmarks.runs.provenance import device_name
from benchmarks.speed.head_costs import seconds

BATCH, TURNS = 10, 7
COLUMNS = {
    "train": "a mini-batch of ten, with no predictions in between",
    "full": "a prediction that solves in full",
    "first turn": "the mini-batch after it",
    "turn": "a mini-batch, with predictions in between",
    "predict after": "the first prediction after a mini-batch",
    "predict": "a prediction with nothing new learned",
    "load": "from a file",
    "cold predict": "the first prediction after loading",
}


def costs(vit: torch.nn.Module, samples: int, classes: int) -> dict[str, float]:
    """Milliseconds by :data:`COLUMNS`, and ``"file MB"``."""
    draw, size = torch.Generator().manual_seed(0), vit.patch_embed.img_size[0]
    model = F2OCLModel.best(vit)
    images = torch.randint(0, 256, (samples, 3, size, size), dtype=torch.uint8, generator=draw)
    labels = torch.arange(samples) % classes

    def learn(part: Tensor) -> float:
        return 1000 * seconds(lambda: model.learn(images[part], labels[part]))

    def predict(model: F2OCLModel = model) -> float:
        return 1000 * seconds(lambda: model.predict(images[:1]))

    model.pool.moved.fill_(model.config.max_drift)  # the prompt has stopped, as during most of a stream
    parts = torch.arange(samples).split(BATCH)
    found = {"train": median(map(learn, parts[:-TURNS])), "full": predict(), "first turn": learn(parts[-TURNS])}
    turns = [(predict(), learn(part), predict(), predict()) for part in parts[1 - TURNS :]]
    found |= {"turn": median(t[1] for t in turns), "predict after": median(t[2] for t in turns)}
    found["predict"] = median(t[3] for t in turns)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        model.save(path)
        found["file MB"] = path.stat().st_size / 1e6
        other = []
        found["load"] = 1000 * seconds(lambda: other.append(F2OCLModel.from_file(path, backbone=vit)))
        found["cold predict"] = predict(other[0])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backbones", nargs="+", default=["vit_tiny_patch16_224", "vit_base_patch16_224"])
    parser.add_argument("--image-size", type=int, default=112)
    parser.add_argument("--samples", type=int, default=1000, help="the last 70 of them come one mini-batch at a time")
    parser.add_argument("--classes", type=int, default=30)
    args = parser.parse_args()
    versions = f"torch {torch.__version__}, {platform.system()}"
    print(f"{device_name(torch.device('cpu'))}, {torch.get_num_threads()} threads, {versions}\n")
    for name in args.backbones:
        made = load_vit(MICRO_VIT) if name == MICRO_VIT else timm.create_model(name, img_size=args.image_size)
        found = costs(made, args.samples, args.classes)
        print(f"**{name}**, file of {found.pop('file MB'):.0f} MB\n\n| what | ms |\n|---|---:|")
        print("\n".join(f"| {COLUMNS[column]} | {value:.0f} |" for column, value in found.items()), end="\n\n")


if __name__ == "__main__":
    main()
