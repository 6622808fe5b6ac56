"""The measurements of speed: each function gives a ratio or time, and the figures that it was computed from."""

from collections.abc import Callable
from statistics import median
from typing import Any

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
from benchmarks.speed.bare import bare_prediction, bare_step
from benchmarks.speed.setting import BATCH, Setting, random_data, random_stream, train
from benchmarks.speed.timing import by_turns, ratio, seconds


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


def per_batch(times: dict[str, list[float]], setting: Setting) -> dict[str, float]:
    """Median milliseconds a mini-batch."""
    return {f"{name.replace(' ', '_')}_ms": 1e3 * median(values) / setting.batches for name, values in times.items()}
