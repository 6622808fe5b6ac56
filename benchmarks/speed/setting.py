"""What the measurements of speed run: a ViT, how much of it, and random images."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import timm
import torch
from timm.models import VisionTransformer

from avalanche_f2ocl import class_incremental_stream
from avalanche_f2ocl.datasets.image_tensors import ImageTensors
from avalanche_f2ocl.strategies.base import BaseStrategy
from avalanche_f2ocl.streams.online import online_stream

BATCH = 10


@dataclass
class Setting:
    """What is run, and how large.

    Args:
        device: to measure.
        make_vit: gives the ViT; weights are random, which changes no time.
        batches: mini-batches in one turn.
        repeats: turns.
        images: test images of an evaluation, and training images of the whole protocol, which has a fifth for testing.
        classes: of the pool that has grown.
        steps: mini-batches after which memory is compared, few and many.
        dataset: zip with CIFAR-100's images, or a part, for the whole protocol; None for random ones.
    """

    device: torch.device
    make_vit: Callable[[], VisionTransformer]
    batches: int = 20
    repeats: int = 5
    images: int = 512
    classes: int = 10_000
    steps: tuple[int, int] = (1_000, 10_000)
    dataset: Path | None = None


def vit_tiny_112() -> VisionTransformer:
    return timm.create_model("vit_tiny_patch16_224", img_size=112, num_classes=0)


def vit_base_224() -> VisionTransformer:
    return timm.create_model("vit_base_patch16_224", num_classes=0)


def toy_vit() -> VisionTransformer:
    return VisionTransformer(img_size=32, patch_size=16, embed_dim=32, depth=2, num_heads=2, num_classes=0)


def random_data(count: int, classes: int, size: int = 32) -> ImageTensors:
    """Random images ``(count, 3, size, size)`` uint8, classes in turn."""
    draw = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (count, 3, size, size), dtype=torch.uint8, generator=draw)
    return ImageTensors(images, torch.arange(count) % classes)


def random_stream(count: int, classes: int = 10):
    data = random_data(count, classes)
    return class_incremental_stream((data, data), groups=1)


def train(strategy: BaseStrategy, stream: Any) -> None:
    """One pass over a stream's training part, as an online stream."""
    strategy.train(online_stream(stream.train_stream, strategy.train_mb_size), eval_streams=[])
