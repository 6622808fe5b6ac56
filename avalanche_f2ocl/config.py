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
"""The options of :meth:`avalanche_f2ocl.F2OCLStrategy.best` and :meth:`avalanche_f2ocl.F2OCLStrategy.paper`."""


@dataclass(frozen=True)
class FrozenConfig(HeadOptions, EncoderOptions):
    """Options of a frozen backbone without prompts under a head, checked at construction.

    Args:
        head_features: what the head sees of the one forward pass without prompts. ``"q"`` is the embedding,
            ``"layers"`` the class token and mean patch of blocks; ``"class_tokens"`` concatenates the class tokens
            after the last ``blocks`` blocks, as LayUP does, and ``"fused"`` takes their mean under the last norm, as
            F-OAL does.
        blocks, blocks_per_head, grid, vote: which blocks give layers, and how the heads on them share the work; see
            :class:`avalanche_f2ocl.options.HeadOptions`.
        penalty: how ``head="ridge"`` chooses its penalty where ``ridge`` is None: ``"gcv"``, by generalised
            cross-validation; ``"past"``, by samples held out of the stream so far; ``"task"``, by samples held out of
            each task, which needs boundaries, see :class:`avalanche_f2ocl.heads.TaskRidgeHead`.
        head, metric, shrinkage, priors, projection, random_features, gamma, ridge: the classifier and its settings; see
            :class:`avalanche_f2ocl.options.HeadOptions`.
        readout, normalise, inputs, fit, precision: how the backbone sees images; see
            :class:`avalanche_f2ocl.options.EncoderOptions`.
        seed: seed of the head's random projection.

    Raises:
        TypeError: a number has the wrong type.
        ValueError: a value is not allowed; the message names those that are.

    Example:
        >>> FrozenConfig(head="lda").head_features
        'q'
    """

    head_features: FrozenFeatures = "q"  # type: ignore[assignment]
    penalty: FrozenPenalty = "gcv"  # type: ignore[assignment]


@dataclass(frozen=True)
class F2OCLConfig(HeadOptions, EncoderOptions):
    """Options of F2OCL, checked at construction.

    The defaults are this package's reading of the paper; ``F2OCLStrategy.paper()`` is the literal reading.

    Args:
        prompt_length: tokens per prompt, L.
        lr: step size of the prompts.
        betas: Adam's decay rates for the prompts.
        lr_decay: exponent p; a prompt's step number t has the size ``lr / t**p``, where t counts the prompt's own
            steps. 0 is the paper's constant step size, under which prototypes go stale in a long stream of few classes.
        temperature: divides the similarities in the contrastive loss.
        passes: optimiser steps per mini-batch.
        keys: prompts concatenated for a prediction, nearest key first.
        prompt_assignment: ``"batch"`` encodes a training mini-batch under one elected class's prompt;
            ``"label"`` gives every sample its own label's prompt. This leaks the label into the
            embedding: the loss falls because prompts encode the label instead of the image, and predictions are
            then just the nearest key's class. ``"shared"``, which the paper does not have, trains one prompt on
            all mini-batches and encodes every image under it: no key is needed, and the embedding means the same for
            every class. A class of your own is also allowed, see docs/extending.md.
        prompt_election: whose prompt the mini-batch gets: ``"sample"``, that of the class of a random sample;
            ``"majority"``, that of the most frequent class; ``"seen"``, that of any class seen so far. A function of
            your own is also allowed, see docs/extending.md.
        prompt_init: ``"uniform"`` in [-1, 1), ``"normal"`` with standard deviation 0.02, or ``"zeros"``.
        prompt_position: ``"cls"`` adds the class token's position embedding to prompts; ``"none"`` adds nothing.
        key_update: ``"mean"``, the running mean of the unprompted embeddings; ``"gradient"``, one gradient
            step a mini-batch, starting from a random key (Eq. 9).
        key_lr: step size of ``key_update="gradient"``.
        compensate_drift: whether to subtract from embeddings how far the steps of their prompt have moved them so far,
            measured on the mean over each step's mini-batch. Sums of earlier mini-batches then stay comparable with
            later ones while prompts move. It is not in the paper, and not allowed with ``prompt_assignment="label"``,
            whose prompts carry the label, nor with elections of classes outside the mini-batch (``"seen"`` and
            functions of your own).
        max_drift: a prompt stops once its steps, all added up, have moved the embeddings of their mini-batches by this
            share of the embeddings' spread. No sum is then further than that from what it would be under the final
            prompt, and later mini-batches need no backward pass. None means that prompts never stop. It is not in the
            paper, and not allowed with elections of classes outside the mini-batch (``"seen"`` and functions of your
            own).
        zoom: passes with prompts see the middle 1 / zoom of each side, enlarged; 1 means the whole image, as in the
            paper.
        negatives: which prototypes a sample is pushed away from: ``"batch"``, those of the mini-batch's samples of
            other classes; ``"all"``, those of all other classes; see
            :func:`avalanche_f2ocl.losses.contrastive_prompt_loss`.
        exclude_self: whether the loss takes a sample out of its own positives, as SupCon does.
        capture: whether to replay training passes as CUDA graphs, see
            :class:`avalanche_f2ocl.backbone.PromptableViT`.
        compile: whether to compile the backbone's blocks with ``torch.compile``.
        readout, normalise, inputs, fit, precision, seed: how the backbone sees images, and the seed; see
            :class:`avalanche_f2ocl.options.EncoderOptions`.
        head_features: what the head sees: ``"z"``, the prompted embedding, as in the paper; ``"either"``, which is
            level with the frozen backbone where prompts do not help, and is not allowed with
            ``prompt_assignment="label"``; for others see :class:`avalanche_f2ocl.options.HeadOptions`.
        head, metric, shrinkage, priors, projection, random_features, gamma, ridge, penalty: the classifier and its
            settings; see :class:`avalanche_f2ocl.options.HeadOptions`.
        blocks, blocks_per_head, grid, vote: which blocks give layers, and how the heads on them share the work; see
            :class:`avalanche_f2ocl.options.HeadOptions`.

    Raises:
        TypeError: a number has the wrong type.
        ValueError: a value is not allowed; the message names those that are.

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
        # Undo notes the state of prompts only for the mini-batch's own classes.
        elects = self.prompt_assignment not in ("label", "shared")
        anywhere = elects and self.prompt_election not in ("sample", "majority")
        if label and self.head_features == "either":
            raise ValueError("head_features='either' does not go with prompt_assignment='label': allowed is 'z'")
        if self.compensate_drift and (label or anywhere):
            name, value = ("prompt_assignment", "label") if label else ("prompt_election", self.prompt_election)
            raise ValueError(f"compensate_drift=True does not go with {name}={value!r}")
        if self.max_drift is not None and anywhere:
            raise ValueError(f"max_drift={self.max_drift!r} does not go with prompt_election={self.prompt_election!r}")
