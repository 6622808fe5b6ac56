"""Where a training mini-batch's time goes.

    python -m benchmarks.speed.profile_step --backbone vit_tiny_patch16_224 --image-size 112

Each part is timed by itself, with waits for the device before and after, so on CUDA the sum of the parts is more than
an unobserved step takes; the latter is timed, too. Weights and images are random. The parts are data (fetching and
checking), tokens (preprocessing and patch embedding), q, z (the pass with gradient), loss, backward, optimiser, keys,
prototypes (the pass under the updated prompt, and the sums), outputs (the label-free logits), metrics (if any take part
in training) and rest (Avalanche, and our own bookkeeping).
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import timm
import torch
from avalanche.evaluation.metrics import accuracy_metrics
from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import F2OCLStrategy
from avalanche_f2ocl.backbone.devices import default_device
from benchmarks.speed.setting import BATCH, random_stream, train
from benchmarks.speed.timing import seconds


class Parts:
    """Seconds by part; the time of a part inside another counts only once, for the inner part.

    Args:
        device: the device to wait for where a part begins and ends.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.seconds: dict[str, float] = defaultdict(float)
        self._inside: list[float] = []

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        self._wait()
        start = time.perf_counter()
        self._inside.append(0.0)
        try:
            yield
        finally:
            self._wait()
            took = time.perf_counter() - start
            self.seconds[name] += took - self._inside.pop()
            if self._inside:
                self._inside[-1] += took

    def watch(self, owner: Any, method: str, name: str) -> None:
        """From now on a method's calls count as a part."""
        original: Callable = getattr(owner, method)

        def watched(*args, **kwargs):
            with self.part(name):
                return original(*args, **kwargs)

        setattr(owner, method, watched)

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def watch_step(strategy: F2OCLStrategy, parts: Parts) -> None:
    """Splits a strategy's training step into parts."""
    model, backbone = strategy.model, strategy.model.backbone
    parts.watch(strategy, "_unpack_minibatch", "data")
    parts.watch(backbone, "tokens", "tokens")
    parts.watch(model, "_encode_unprompted", "q")
    parts.watch(model, "loss", "loss")
    parts.watch(strategy, "backward", "backward")
    parts.watch(strategy, "optimizer_step", "optimiser")
    parts.watch(model, "update_keys", "keys")
    parts.watch(model, "update_prototypes", "prototypes")
    parts.watch(model, "batch_logits", "outputs")
    parts.watch(strategy.evaluator, "_update_metrics_and_loggers", "metrics")
    encode, fetched = backbone.encode_tokens, strategy._fetched

    def encode_tokens(tokens, prompts=None, replay=False):
        if prompts is None or not torch.is_grad_enabled():
            return encode(tokens, prompts, replay)
        with parts.part("z"):
            return encode(tokens, prompts, replay)

    def fetch():
        minibatches = fetched()
        while True:
            with parts.part("data"):
                minibatch = next(minibatches, None)
            if minibatch is None:
                return
            yield minibatch

    backbone.encode_tokens, strategy._fetched = encode_tokens, fetch


def profile(strategy: F2OCLStrategy, batches: int) -> tuple[dict[str, float], float]:
    """Milliseconds a mini-batch by part, largest first, and milliseconds of a whole unobserved mini-batch."""
    stream = random_stream(BATCH * batches)
    train(strategy, stream)
    alone = seconds(lambda: train(strategy, stream), strategy.device)
    parts = Parts(strategy.device)
    watch_step(strategy, parts)
    with parts.part("rest"):
        train(strategy, stream)
    shares = sorted(parts.seconds.items(), key=lambda item: -item[1])
    return {name: 1e3 * taken / batches for name, taken in shares}, 1e3 * alone / batches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backbone", default="vit_tiny_patch16_224")
    parser.add_argument("--image-size", type=int, default=112)
    parser.add_argument("--device", help="default CUDA if there is one, else CPU")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--metrics", action="store_true", help="with Avalanche's accuracy of every mini-batch")
    args = parser.parse_args()
    vit = timm.create_model(args.backbone, img_size=args.image_size, num_classes=0)
    evaluator = EvaluationPlugin(accuracy_metrics(minibatch=True)) if args.metrics else None
    device = default_device(args.device)
    strategy = F2OCLStrategy(backbone=vit, evaluator=evaluator, device=device, precision=args.precision)
    parts, alone = profile(strategy, args.batches)
    print("| part | ms a mini-batch | share |\n|---|---:|---:|")
    for name, taken in parts.items():
        print(f"| {name} | {taken:.2f} | {100 * taken / sum(parts.values()):.1f} % |")
    print(f"| sum | {sum(parts.values()):.2f} | |\n| not watched | {alone:.2f} | |")


if __name__ == "__main__":
    main()
