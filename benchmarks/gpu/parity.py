"""Whether CUDA learns and predicts the same as the CPU: digits on the bundled ViT, in float32 and bfloat16."""

from copy import deepcopy
from itertools import product

import torch
from avalanche.training.plugins import EvaluationPlugin

from avalanche_f2ocl import F2OCLStrategy, FrozenBackbone, ViTNCM, class_incremental_stream, f2ocl_metrics
from avalanche_f2ocl.backbone.weights import load_vit
from avalanche_f2ocl.evaluation.by_groups import run_online
from benchmarks.gpu.setting import Results, Setting, tried

METHODS = {
    "vit-ncm": ViTNCM,
    "vit-ridge": lambda **options: FrozenBackbone(head="ridge", projection=200, **options),
    "f2ocl": F2OCLStrategy,
    "best": F2OCLStrategy.best,
}


def main(argv: list[str] | None = None) -> None:
    setting = Setting.of(argv)
    results, vit = Results(setting.out), load_vit("micro_vit")
    sizes = {"train_per_class": 10, "test_per_class": 5} if setting.small else {}
    methods = ["vit-ncm", "best"] if setting.small else list(METHODS)
    for method in methods:
        # The CPU also runs in bfloat16, since changes by the precision are not caused by the device.
        places = [torch.device("cpu"), *([] if setting.device.type == "cpu" else [setting.device])]
        runs = {
            (place.type, precision): tried(learn, METHODS[method], deepcopy(vit), place, precision, sizes)
            for place, precision in product(places, ("float32", "bfloat16"))
        }
        reference = runs["cpu", "float32"]
        for (place, precision), run in runs.items():
            results[f"{method} {place} {precision}"] = tried(compared, run, reference)


def learn(make, vit, device: torch.device, precision: str, sizes: dict[str, int]) -> tuple[float, torch.Tensor]:
    """A_n after a run, and the last logits of the test images ``(N, C)``."""
    stream = class_incremental_stream("digits", groups=5, **sizes)
    metrics = EvaluationPlugin(f2ocl_metrics()[0])
    strategy = make(backbone=vit, device=device, precision=precision, evaluator=metrics)
    A_n = run_online(strategy, stream, progress=False).A_n
    images = torch.stack([image for test in stream.test_stream for image, *_ in test.dataset])
    return 100 * A_n, strategy.model(images).cpu()


def compared(run: tuple[float, torch.Tensor], reference: tuple[float, torch.Tensor]) -> dict[str, float]:
    """A_n in per cent, the share of equal predictions, and the distance of the logits relative to their spread."""
    if isinstance(run, dict):
        return run
    (A_n, logits), (_, expected) = run, reference
    same = (logits.argmax(1) == expected.argmax(1)).float().mean()
    far = (logits - expected).square().mean().sqrt() / expected.std()
    return {"A_n": round(A_n, 2), "same_answers": round(100 * same.item(), 2), "logits_off": float(f"{far:.3g}")}


if __name__ == "__main__":
    main()
