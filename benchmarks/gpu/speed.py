"""Milliseconds of a ViT-B/16's mini-batch of ten, from plain eager PyTorch to captured graphs, and their limits.

Weights and images are random, which does not affect times. ``of_arithmetic`` is the share of the time that the
arithmetic of the three passes and the gradient would take at the rate that a large matrix product reaches here.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from avalanche_f2ocl import F2OCLModel, F2OCLStrategy
from avalanche_f2ocl.baselines import L2P
from avalanche_f2ocl.heads.regression import gcv_ridge, given_ridge
from benchmarks.gpu.setting import Results, Setting, tried
from benchmarks.speed import rows
from benchmarks.speed import setting as sizes
from benchmarks.speed.bare import bare_step
from benchmarks.speed.setting import BATCH, random_data, random_stream, toy_vit, train, vit_base_224
from benchmarks.speed.timing import by_turns

WIDTHS = (1_536, 5_000)
"""Numbers of features for which a ridge head is solved: two of a ViT-B/16's vectors, and a projection's."""
OTHER_PASSES = ("L2P, eager", "best")
"""Rows whose passes differ from those that the arithmetic was computed for."""


class Speed:
    """The rows of the table.

    Args:
        setting: setting of the part.
    """

    def __init__(self, setting: Setting) -> None:
        small = setting.small
        self.small, self.device = small, setting.device
        self.make_vit = toy_vit if small else vit_base_224
        few = {"batches": 2, "repeats": 1, "images": 20, "classes": 200} if small else {"images": 2048}
        self.own = sizes.Setting(setting.device, self.make_vit, **few)

    @property
    def rows(self) -> dict[str, Callable[[], dict[str, Any]]]:
        """The rows in the order of their value; rows that take a minute to compile come last."""
        return {
            "matrix product": self.matrix_product,
            "strategy.train": self.through_strategy,
            "captured bfloat16": lambda: self.learning(capture="auto", precision="bfloat16"),
            "eager bfloat16": lambda: self.learning(capture=False, precision="bfloat16"),
            "eager autocast": lambda: self.eager(autocast=True),
            "eager tf32": lambda: self.eager(matmul="high"),
            "eager float32": self.eager,
            "L2P, eager": self.l2p,
            # Without what ends its training after some hundred mini-batches.
            "best": lambda: self.through_strategy(partial(F2OCLStrategy.best, max_drift=None)),
            "evaluation": lambda: rows.evaluation_by_bare(self.own),
            "10,000 classes": lambda: rows.step_with_many_classes(replace(self.own, batches=2)),
            "solving": self.solving,
            "compiled bfloat16": lambda: self.compiled(capture=False),
            "compiled and captured": lambda: self.compiled(capture="auto"),
        }

    def matrix_product(self) -> dict[str, float]:
        """TFLOP/s of a matrix product, the ceiling of everything else."""
        side = 256 if self.small else 8192
        rates = {}
        for name, dtype, matmul in (("bfloat16", torch.bfloat16, "highest"), ("tf32", torch.float32, "high")):
            a, b = (torch.randn(side, side, device=self.device, dtype=dtype) for _ in range(2))
            with precision_of_products(matmul):
                took = self._seconds(lambda a=a, b=b: a @ b, 10)
            rates[f"{name}_tflops"] = 2 * side**3 / took / 1e12
        return rates

    def through_strategy(self, make: Callable[..., Any] = F2OCLStrategy) -> dict[str, float]:
        """Training as users do."""
        strategy = make(backbone=self.make_vit(), evaluator=None, device=self.device)
        stream = random_stream(BATCH * self.own.batches)
        return self._a_batch(lambda: train(strategy, stream), self.own.batches)

    def l2p(self) -> dict[str, float]:
        return self.through_strategy(lambda **options: L2P(mask_logits="batch", **options))

    def learning(self, **options: Any) -> dict[str, float]:
        """``model.learn``, without Avalanche."""
        model = F2OCLModel(self.make_vit(), device=self.device, **options)
        data = random_data(BATCH, 10)
        return self._a_batch(lambda: model.learn(data.images, data.labels))

    def compiled(self, capture: Any) -> dict[str, Any]:
        if self.small:
            return {"not_run": "it takes a minute to compile"}
        return self.learning(capture=capture, precision="bfloat16", compile=True)

    def eager(self, autocast: bool = False, matmul: str = "highest") -> dict[str, float]:
        """The step's passes in plain PyTorch."""
        vit = self.make_vit().requires_grad_(False).eval().to(self.device)
        images, prompt = self._inputs(vit)
        with precision_of_products(matmul):
            return self._a_batch(lambda: bare_step(vit, images, prompt, autocast=autocast))

    def arithmetic(self) -> dict[str, float]:
        """TFLOP of the step's passes."""
        vit = self.make_vit().requires_grad_(False).eval().to(self.device)
        with FlopCounterMode(display=False) as counter:
            bare_step(vit, *self._inputs(vit))
        return {"teraflop": counter.get_total_flops() / 1e12}

    def solving(self) -> dict[str, float]:
        """Seconds of a ridge head's solution, with the penalty chosen and with the penalty given."""
        found = {}
        for width in (64,) if self.small else WIDTHS:
            features = torch.randn(2 * width, width, device=self.device, dtype=torch.float64)
            moment, sums, count = features.T @ features, features[:100], torch.tensor(2.0 * width, device=self.device)
            found[f"chosen_{width}"] = self._seconds(lambda m=moment, s=sums, n=count: gcv_ridge(m, s, n), 1)
            found[f"given_{width}"] = self._seconds(lambda m=moment, s=sums, n=count: given_ridge(m, s, 1.0, n), 1)
        return found

    def _inputs(self, vit: Any) -> tuple[torch.Tensor, torch.nn.Parameter]:
        size = vit.patch_embed.img_size[0]
        prompt = torch.rand(1, 20, vit.embed_dim, device=self.device) * 2 - 1
        return torch.randn(BATCH, 3, size, size, device=self.device), torch.nn.Parameter(prompt)

    def _seconds(self, function: Callable[[], object], calls: int) -> float:
        """Median over turns of the seconds of one call, in a row of ``calls`` calls."""
        turns = {"it": lambda: [function() for _ in range(calls)]}
        return median(by_turns(turns, self.device, self.own.repeats)["it"]) / calls

    def _a_batch(self, function: Callable[[], object], batches: int = 1) -> dict[str, float]:
        """Milliseconds a mini-batch, if one call learns ``batches`` of them."""
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        took = self._seconds(function, self.own.batches // batches) / batches
        peak = torch.cuda.max_memory_allocated(self.device) / 1e9 if self.device.type == "cuda" else 0.0
        return {"ms": 1e3 * took, "peak_gb": peak}


@contextmanager
def precision_of_products(name: str) -> Iterator[None]:
    """Sets the precision of float32 matrix products: ``"highest"``, or ``"high"`` for tf32 where it exists."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def main(argv: list[str] | None = None) -> None:
    setting = Setting.of(argv)
    results, speed = Results(setting.out), Speed(setting)
    results["arithmetic"] = tried(speed.arithmetic)
    for name, row in speed.rows.items():
        found = tried(row)
        if "ms" in found and name not in OTHER_PASSES:
            seconds = results["arithmetic"].get("teraflop", 0) / results["matrix product"].get("bfloat16_tflops", 1)
            found["of_arithmetic"] = 1e3 * seconds / found["ms"]
        results[name] = {key: round(value, 4) if isinstance(value, float) else value for key, value in found.items()}


if __name__ == "__main__":
    main()
