"""How much more heads could get out of the recommended passes: by kernels on stored features, by mirror images.

    python -m benchmarks.beyond.ceiling --data-dir DIR --weights vit_tiny_patch16_224.safetensors

Held-out training images, as in ``benchmarks.beyond.features``, and CIFAR-100 with more images a class. Kernel ridge
regression keeps the features of all training images, so it is no rehearsal-free method: it shows what the sums of
linear heads leave out. Accuracy in per cent.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.beyond.features import RECOMMENDED, WHOLE, Loaded, Pass, Trial, run
from benchmarks.beyond.settings import MANY

TABLE = "ceiling"
KERNELS = {"linear": 1, "quadratic": 2, "of degree 4": 4}
"""Power p of the kernel ((1 + cosine) / 2)^p."""
PENALTIES = (0.003, 0.01, 0.03, 0.1)
VARIANTS = (
    "as recommended",
    "as recommended, mirror images",
    *(f"all features kept, {name} kernel" for name in KERNELS),
)


class Mirrored(Trial):
    """Layers are means over an image and its mirror image, which takes twice as many passes."""

    def _layers(self, prompted: bool, zoom: float, grid: int) -> Tensor:
        there = super()._layers(prompted, zoom, grid)
        self.images = self.images.flip(-1)
        back = super()._layers(prompted, zoom, grid)
        self.images = self.images.flip(-1)
        return F.normalize(there.float(), dim=-1).add_(F.normalize(back.float(), dim=-1)).half()


def cosines(features: Tensor, train: Tensor) -> Tensor:
    """Cosines ``(N, M)`` between the features ``(N, F)`` of all images and those of ``M`` training images, all
    relative to the training images' mean."""
    centred = F.normalize(features - features[train].mean(0), dim=1)
    return centred @ centred[train].T


def kernel_ridge(kernel: Tensor, train: Tensor, labels: Tensor) -> Tensor:
    """Scores of kernel ridge regression, with the penalty whose leave-one-out error is the smallest.

    Args:
        kernel: ``(N, M)`` float32, between all images and the training images.
        train: ``(M,)`` int64, the training images' rows.
        labels: ``(N,)`` int64, from 0.

    Returns:
        ``(N, C)`` float32.
    """
    targets = F.one_hot(labels[train]).float()
    targets = targets - targets.mean(0)
    best, scores = float("inf"), targets
    for penalty in PENALTIES:
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(kernel[train] + penalty * torch.eye(len(train))))
        weights = inverse @ targets
        error = (weights / inverse.diagonal().unsqueeze(1)).square().sum().item()
        if error < best:
            best, scores = error, kernel @ weights
    return scores


def features_of(trial: Trial, chosen: Pass) -> Tensor:
    """What the heads on a pass see, ``(N, F)`` float32."""
    encode = trial.layers if chosen.prompted else trial.unprompted
    return F.normalize(encode(chosen.prompted, chosen.zoom, chosen.grid).float(), dim=-1).flatten(1)


def trials(loaded: Loaded, seed: int) -> dict[str, float]:
    """Accuracy by variant, in per cent."""
    trial, both = Trial(*loaded, seed), (WHOLE, RECOMMENDED)
    similarity = sum(cosines(features_of(trial, chosen), trial.train) for chosen in both) / len(both)
    figures = [trial.accuracy(both, 4), Mirrored(*loaded, seed).accuracy(both, 4)]
    for power in KERNELS.values():
        scores = kernel_ridge(((1 + similarity) / 2) ** power, trial.train, trial.labels)
        right = scores[trial.test].argmax(1) == trial.labels[trial.test]
        figures.append(100 * right.double().mean().item())
    return {variant: round(figure, 4) for variant, figure in zip(VARIANTS, figures, strict=True)}


if __name__ == "__main__":
    run(__doc__, TABLE, VARIANTS, trials, more=(MANY,))
