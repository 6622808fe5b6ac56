"""The options of F2OCL, and of a frozen backbone under a head."""

from dataclasses import dataclass
from typing import Any, Literal

from avalanche_f2ocl.arguments import check_number, check_positive, check_positive_int
from avalanche_f2ocl.options import (
    Capture,
    EncoderOptions,
    FrozenFeatures,
    FrozenPenalty,
    HeadFeatures,
    HeadOptions,
    PromptAssignment,
    PromptElection,
    PromptInit,
    PromptPosition,
)

MAX_ZOOM = 8

PRESETS: dict[str, dict[str, Any]] = {
    "best": {
        "prompt_assignment": "shared",
        "head": "ridge",
        "head_features": "ensemble",
        "projection": 0,
        "grid": 2,
        "zoom": 1.3,
        "max_drift": 2.0,
    },
    "paper": {"prompt_assignment": "label", "key_update": "gradient", "lr_decay": 0.0, "head_features": "z"},
}
"""See :meth:`avalanche_f2ocl.F2OCLStrategy.best` and :meth:`avalanche_f2ocl.F2OCLStrategy.paper`."""


@dataclass(frozen=True)
class FrozenConfig(HeadOptions, EncoderOptions):
    """Options of a frozen backbone without prompts under a head, checked at construction.

    Args:
        head_features: ``"q"``, the embedding, or ``"layers"``, both from the one forward pass without prompts; or what
            others make of the class tokens after the last ``blocks`` blocks, ``"class_tokens"``, one after the other
            (LayUP), and ``"fused"``, their mean under the last norm (F-OAL).
        blocks, blocks_per_head, grid, vote: of layers, see :class:`avalanche_f2ocl.options.HeadOptions`.
        penalty: of ``head="ridge"``, where none is given: ``"gcv"`` and ``"past"`` as there; ``"task"``, by samples
            held out of each task, see :class:`avalanche_f2ocl.heads.TaskRidgeHead`, which needs boundaries.
        head, metric, shrinkage, priors, projection, random_features, gamma, ridge: see there.
        readout, normalise, inputs, precision: see :class:`avalanche_f2ocl.options.EncoderOptions`.
        seed: of the head's random projection.

    Raises:
        TypeError, ValueError: as there.

    Example:
        >>> FrozenConfig(head="lda").head_features
        'q'
    """

    head_features: FrozenFeatures = "q"  # type: ignore[assignment]
    penalty: FrozenPenalty = "gcv"  # type: ignore[assignment]


@dataclass(frozen=True)
class F2OCLConfig(HeadOptions, EncoderOptions):
    """Options of F2OCL, checked at construction.

    The defaults are this package's reading of the paper; ``F2OCLStrategy.paper()`` is the literal one.

    Args:
        prompt_length: tokens per prompt, L.
        lr: step size of the prompts.
        betas: Adam's decays for the prompts.
        lr_decay: exponent p; a prompt's step t has the size ``lr / t**p``, t counting its own steps. 0 is
            the paper's constant step size, under which the prototypes of a long stream of few classes go stale.
        temperature: divides the similarities in the contrastive loss.
        passes: optimiser steps per mini-batch.
        keys: prompts concatenated for a prediction, nearest key first.
        prompt_assignment: ``"batch"`` encodes a training mini-batch under one elected class's prompt;
            ``"label"`` gives every sample its own label's prompt. The second leaks the label into the
            embedding: the loss falls by encoding the label instead of the image, and predictions are
            then just the nearest key's class. ``"shared"``, which the paper does not have, trains one prompt on
            all mini-batches and encodes every image under it: no key is asked, and the embedding means the same for
            every class. Or a class of your own, see docs/extending.md.
        prompt_election: whose prompt the mini-batch gets: ``"sample"``, the class of a random sample;
            ``"majority"``, the most frequent class; ``"seen"``, any class seen so far; or a function of your own, see
            docs/extending.md.
        prompt_init: ``"uniform"`` in [-1, 1), ``"normal"`` with deviation 0.02, or ``"zeros"``.
        prompt_position: ``"cls"`` adds the class token's position embedding to prompts.
        key_update: ``"mean"``, running mean of the unprompted embeddings; ``"gradient"``, one gradient
            step a mini-batch from a random key (Eq. 9).
        key_lr: step size of ``key_update="gradient"``.
        compensate_drift: whether embeddings are taken relative to what the steps of their prompt have moved them by
            so far, on the mean over the mini-batch of each step; so sums of earlier mini-batches stay comparable with
            later ones while prompts move. Not in the paper. Not for ``"label"``, whose prompts carry the label, nor for
            elections of other classes than the mini-batch's, ``"seen"`` and your own.
        max_drift: a prompt takes no more steps once they have moved the embeddings, mini-batch by mini-batch, by this
            share of their spread, all steps added up; so no sum is further than that from what it would be under the
            prompt as it is now, and what comes after needs no backward pass. None: prompts never stop. Not in the
            paper. Not for the same elections as ``compensate_drift``.
        zoom: passes with prompts see the middle 1 / zoom of each side, enlarged; 1 for the whole image, as in the
            paper.
        negatives, exclude_self: see :func:`avalanche_f2ocl.losses.contrastive_prompt_loss`.
        capture, compile: of the frozen backbone, see :class:`avalanche_f2ocl.backbone.PromptableViT`.
        readout, normalise, inputs, precision, seed: see :class:`avalanche_f2ocl.options.EncoderOptions`.
        head_features: ``"z"`` as in the paper; ``"either"``, which is level with the frozen backbone where prompts do
            not help, and does not go with ``"label"``; others see :class:`avalanche_f2ocl.options.HeadOptions`.
        head, blocks, blocks_per_head, grid, vote, metric, shrinkage, priors: see there.
        projection, random_features, gamma, ridge, penalty: likewise.

    Raises:
        TypeError: a number of the wrong type.
        ValueError: a value that is not allowed; the message names those that are.

    Example:
        >>> F2OCLConfig(prompt_length=5).prompt_length
        5
    """

    head_features: HeadFeatures = "either"
    prompt_length: int = 20
    lr: float = 0.1
    betas: tuple[float, float] = (0.9, 0.999)
    lr_decay: float = 1.0
    temperature: float = 0.2
    passes: int = 1
    keys: int = 1
    prompt_assignment: PromptAssignment = "batch"
    prompt_election: PromptElection = "sample"
    prompt_init: PromptInit = "uniform"
    prompt_position: PromptPosition = "none"
    key_update: Literal["mean", "gradient"] = "mean"
    key_lr: float = 0.1
    compensate_drift: bool = False
    max_drift: float | None = None
    zoom: float = 1.0
    negatives: Literal["batch", "all"] = "batch"
    exclude_self: bool = False
    capture: Capture = "auto"
    compile: Literal[True, False] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("prompt_length", "passes", "keys"):
            check_positive_int(name, getattr(self, name))
        for name in ("lr", "temperature", "key_lr"):
            check_positive(name, getattr(self, name))
        check_number("lr_decay", self.lr_decay)
        if not 0 <= self.lr_decay < float("inf"):
            raise ValueError(f"lr_decay={self.lr_decay!r}: must be 0 or more and finite")
        if not (isinstance(self.betas, (tuple, list)) and len(self.betas) == 2):
            raise TypeError(f"betas={self.betas!r}: must be two numbers in [0, 1)")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas={self.betas!r}: must be two numbers in [0, 1)")
        for name in ("exclude_self", "compensate_drift"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name}={getattr(self, name)!r}: must be True or False")
        if self.max_drift is not None:
            check_positive("max_drift", self.max_drift)
        check_number("zoom", self.zoom)
        if not 1 <= self.zoom <= MAX_ZOOM:
            raise ValueError(f"zoom={self.zoom!r}: must be from 1 to {MAX_ZOOM}")
        label = self.prompt_assignment == "label"
        # What is kept of a prompt is noted, to be put back, for the mini-batch's classes alone.
        elects = self.prompt_assignment not in ("label", "shared")
        anywhere = elects and self.prompt_election not in ("sample", "majority")
        if label and self.head_features == "either":
            raise ValueError("head_features='either' does not go with prompt_assignment='label': allowed is 'z'")
        if self.compensate_drift and (label or anywhere):
            name, value = ("prompt_assignment", "label") if label else ("prompt_election", self.prompt_election)
            raise ValueError(f"compensate_drift=True does not go with {name}={value!r}")
        if self.max_drift is not None and anywhere:
            raise ValueError(f"max_drift={self.max_drift!r} does not go with prompt_election={self.prompt_election!r}")
