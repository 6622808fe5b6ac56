"""The measurements of speed: each function gives a ratio or time, and the figures that it was computed from."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import timm
import torch
from avalanche.evaluation.metrics import accuracy_metrics
from avalanche.training.plugins import EvaluationPlugin
from timm.models import VisionTransformer
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from avalanche_f2ocl import F2OCLModel, F2OCLStrategy, class_incremental_stream, f2ocl_metrics
from avalanche_f2ocl.backbone.attention import gradient_attention
from avalanche_f2ocl.baselines import L2P
from avalanche_f2ocl.datasets.image_tensors import ImageTensors
from avalanche_f2ocl.evaluation.by_groups import run_online
from avalanche_f2ocl.strategies.base import BaseStrategy
from avalanche_f2ocl.streams.online import online_stream
from benchmarks.speed.bare import bare_prediction, bare_step
from benchmarks.speed.timing import by_turns, ratio, seconds

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


def bare_model(setting: Setting, strategy: BaseStrategy, count: int) -> tuple[VisionTransformer, torch.Tensor, Any]:
    """The strategy's own ViT, normalised images ``(count, 3, S, S)`` for it, and a prompt."""
    backbone = strategy.model.backbone
    size = backbone.image_size
    images = torch.randn(count, 3, size, size, device=setting.device, dtype=backbone.dtype)
    return backbone.vit, images, nn.Parameter(torch.rand(1, 20, backbone.embed_dim, device=setting.device) * 2 - 1)


def with_training(
    setting: Setting, strategy: BaseStrategy, others: dict[str, Callable[[], object]]
) -> dict[str, list[float]]:
    """Seconds of ``strategy.train`` over ``setting.batches`` mini-batches, by turns with others."""
    stream = random_stream(BATCH * setting.batches)
    functions = {"strategy": lambda: train(strategy, stream), **others}
    return by_turns(functions, setting.device, setting.repeats)


def strategy_by_bare_step(setting: Setting) -> dict[str, float]:
    """``strategy.train`` by the step's own forward and backward passes, same precision, same attention."""
    strategy = F2OCLStrategy(backbone=setting.make_vit(), evaluator=None, device=setting.device)
    vit, images, prompt = bare_model(setting, strategy, BATCH)

    def bare() -> None:
        for _ in range(setting.batches):
            bare_step(vit, images, prompt, attention=gradient_attention)

    times = with_training(setting, strategy, {"bare": bare})
    return {"value": ratio(times, "strategy", "bare"), **per_batch(times, setting)}


def eager_autocast_by_strategy(setting: Setting) -> dict[str, float]:
    """The same passes in plain eager PyTorch under autocast, by ``strategy.train``."""
    strategy = F2OCLStrategy(backbone=setting.make_vit(), evaluator=None, device=setting.device)
    vit = setting.make_vit().requires_grad_(False).eval().to(setting.device)
    _, images, prompt = bare_model(setting, strategy, BATCH)
    images = images.float()

    def eager() -> None:
        for _ in range(setting.batches):
            bare_step(vit, images, prompt, autocast=True)

    times = with_training(setting, strategy, {"eager autocast": eager})
    return {"value": ratio(times, "eager autocast", "strategy"), **per_batch(times, setting)}


def share_of_arithmetic(setting: Setting) -> dict[str, float]:
    """Time that the step's arithmetic would take at the measured matrix product rate, by ``strategy.train``'s."""
    strategy = F2OCLStrategy(backbone=setting.make_vit(), evaluator=None, device=setting.device)
    vit, images, prompt = bare_model(setting, strategy, BATCH)
    with FlopCounterMode(display=False) as counter:
        bare_step(vit, images, prompt)
    flops = counter.get_total_flops()
    side = 8192 if setting.device.type == "cuda" else 1024
    a, b = (torch.randn(side, side, device=setting.device, dtype=strategy.model.backbone.dtype) for _ in range(2))
    times = with_training(setting, strategy, {"product": lambda: [a @ b for _ in range(10)]})
    rate = 10 * 2 * side**3 / median(times["product"])
    step = median(times["strategy"]) / setting.batches
    return {"value": flops / rate / step, "tflop": flops / 1e12, "tflop_per_s": rate / 1e12, "strategy_ms": step * 1e3}


def l2p_by_strategy(setting: Setting) -> dict[str, float]:
    """Eager L2P on the same ViT, by ``strategy.train``."""
    stream, options = random_stream(BATCH * setting.batches), {"evaluator": None, "device": setting.device}
    strategy = F2OCLStrategy(backbone=setting.make_vit(), **options)
    l2p = L2P(backbone=setting.make_vit(), mask_logits="batch", **options)
    times = with_training(setting, strategy, {"l2p": lambda: train(l2p, stream)})
    return {"value": ratio(times, "l2p", "strategy"), **per_batch(times, setting)}


def whole_protocol(setting: Setting) -> dict[str, float]:
    """Seconds of ten groups in one pass, the seen groups tested after each; data in memory."""
    if setting.dataset is None:
        train_data, test_data = random_data(setting.images, 100), random_data(max(100, setting.images // 5), 100)
    else:
        # As many images as requested, repeating those there are.
        stream = class_incremental_stream(setting.dataset, groups=1)
        parts = []
        for part, count in ((stream.train_stream[0], setting.images), (stream.test_stream[0], setting.images // 5)):
            samples = part.dataset.__getitems__([i % len(part.dataset) for i in range(count)])
            parts.append(ImageTensors(samples.images, samples.labels))
        train_data, test_data = parts
    stream = class_incremental_stream((train_data, test_data), groups=10)
    metrics = f2ocl_metrics()[:2]  # the paper's; the right and the random key cost a pass each
    strategy = F2OCLStrategy(backbone=setting.make_vit(), evaluator=EvaluationPlugin(*metrics), device=setting.device)
    took = seconds(lambda: run_online(strategy, stream, progress=False), setting.device)
    return {"value": took, "training_images": len(train_data), "test_images": len(test_data)}


def evaluation_by_bare(setting: Setting) -> dict[str, float]:
    """``strategy.eval`` with Avalanche's accuracy, by its two forward passes at their best batch size."""
    evaluator = EvaluationPlugin(accuracy_metrics(stream=True))
    strategy = F2OCLStrategy(backbone=setting.make_vit(), evaluator=evaluator, device=setting.device)
    train(strategy, random_stream(BATCH))
    stream = random_stream(setting.images)
    vit, images, prompt = bare_model(setting, strategy, setting.images)
    prompts = prompt.detach().expand(setting.images, -1, -1).contiguous()

    def bare(size: int) -> None:
        for one, two in zip(images.split(size), prompts.split(size), strict=True):
            bare_prediction(vit, one, two)

    functions: dict[str, Callable[[], object]] = {"strategy": lambda: strategy.eval(stream.test_stream)}
    sizes = [size for size in (32, 64, 128, 256, 512) if size <= setting.images] or [setting.images]
    functions |= {str(size): lambda size=size: bare(size) for size in sizes}
    times = by_turns(functions, setting.device, setting.repeats)
    best = min(sizes, key=lambda size: median(times[str(size)]))
    milliseconds = {
        "strategy_ms_an_image": 1e3 * median(times["strategy"]) / setting.images,
        "bare_ms_an_image": 1e3 * median(times[str(best)]) / setting.images,
    }
    return {"value": ratio(times, "strategy", str(best)), "best_batch_size": best, **milliseconds}


def avalanche_overhead(setting: Setting) -> dict[str, float]:
    """Milliseconds a mini-batch that an online stream through Avalanche takes more than a loop over tensors."""
    data = random_data(BATCH * setting.batches, 10)
    strategy = F2OCLStrategy(backbone=setting.make_vit(), evaluator=None, device=setting.device)
    model = F2OCLModel(setting.make_vit(), device=setting.device)

    def loop() -> None:
        for images, labels in zip(data.images.split(BATCH), data.labels.split(BATCH), strict=True):
            model.learn(images, labels)

    times = with_training(setting, strategy, {"loop": loop})
    more = median(one - two for one, two in zip(times["strategy"], times["loop"], strict=True))
    return {"value": 1e3 * more / setting.batches, **per_batch(times, setting)}


def step_with_many_classes(setting: Setting) -> dict[str, float]:
    """``strategy.train`` with ``setting.classes`` classes by that with 100, and the memory of prompts and moments."""
    strategies = {}
    stream = random_stream(BATCH * setting.batches)
    for classes in (100, setting.classes):
        strategy = F2OCLStrategy(backbone=setting.make_vit(), evaluator=None, device=setting.device)
        strategy.model.add_classes(torch.arange(classes))
        strategies[classes] = strategy
    times = by_turns(
        {str(classes): lambda s=strategy: train(s, stream) for classes, strategy in strategies.items()},
        setting.device,
        setting.repeats,
    )
    pool = strategies[setting.classes].model.pool
    tensors = [pool.prompts, *strategies[setting.classes].optimizer.state[pool.prompts].values()]
    gigabytes = sum(tensor.numel() * tensor.element_size() for tensor in tensors) / 1e9
    return {"value": ratio(times, str(setting.classes), "100"), "gigabytes": gigabytes, **per_batch(times, setting)}


def memory_growth(setting: Setting) -> dict[str, float]:
    """Peak memory in the last thousand of many mini-batches by that in the first, in a process of its own."""
    few, many = setting.steps
    code = f"from benchmarks.speed.rows import peaks; print(*peaks({few}, {many}, {str(setting.device)!r}))"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    before, after = map(float, done.stdout.split()[-2:])
    return {"value": after / before, "megabytes_before": before, "megabytes_after": after}


def peaks(few: int, many: int, device: str) -> tuple[float, float]:
    """Peak megabytes of this process, or of the CUDA device, in the first and last ``few`` of ``many`` mini-batches.

    Of a toy ViT, whose own memory hides nothing.
    """
    strategy = F2OCLStrategy(backbone=toy_vit(), evaluator=None, device=device)
    stream, found = random_stream(BATCH * few), []
    for turn in range(many // few):
        _forget_peak(strategy.device)
        train(strategy, stream)
        if turn in (0, many // few - 1):
            found.append(_peak(strategy.device))
    return found[0], found[-1]


def _forget_peak(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    else:
        Path("/proc/self/clear_refs").write_text("5")


def _peak(device: torch.device) -> float:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e6
    # Not getrusage, which begins with the parent's peak and cannot be reset.
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1e3


def per_batch(times: dict[str, list[float]], setting: Setting) -> dict[str, float]:
    """Median milliseconds a mini-batch."""
    return {f"{name.replace(' ', '_')}_ms": 1e3 * median(values) / setting.batches for name, values in times.items()}
