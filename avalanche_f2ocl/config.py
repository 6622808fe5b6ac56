"""The method's options."""

from dataclasses import dataclass

from avalanche_f2ocl.arguments import check_number, check_positive, check_positive_int, check_share

CHOICES: dict[str, tuple[object, ...]] = {
    "prompt_assignment": ("batch", "label", "shared"),
    "prompt_election": ("sample", "majority", "seen"),
    "prompt_init": ("uniform", "normal", "zeros"),
    "prompt_position": ("none", "cls"),
    "readout": ("cls", "prompt", "patch"),
    "key_update": ("mean", "gradient"),
    "negatives": ("batch", "all"),
    "normalise": ("backbone", "unit"),
    "inputs": ("auto", "normalised"),
    "precision": ("auto", "float32", "bfloat16"),
    "capture": ("auto", True, False),
    "compile": (True, False),
    "head": ("ncm", "lda", "ridge"),
    "head_features": ("z", "q", "zq", "layers", "ensemble"),
    "metric": ("cosine", "euclidean"),
    "priors": ("equal", "counts"),
}

PRESETS = {
    "best": {"prompt_assignment": "shared", "head": "ridge", "head_features": "ensemble", "projection": 0},
    "paper": {"prompt_assignment": "label", "key_update": "gradient", "lr_decay": 0.0},
}
"""See :meth:`avalanche_f2ocl.F2OCLStrategy.best` and :meth:`avalanche_f2ocl.F2OCLStrategy.paper`."""


def check_choice(name: str, value: object, allowed: tuple[object, ...] | None = None) -> None:
    """Raises ``ValueError`` naming what is allowed unless ``value`` is; default ``CHOICES[name]``."""
    allowed = CHOICES[name] if allowed is None else allowed
    if value not in allowed:
        raise ValueError(f"{name}={value!r}: allowed are {', '.join(map(repr, allowed))}")


@dataclass(frozen=True)
class HeadOptions:
    """Which classifier predicts, and from what; checked at construction.

    Args:
        head: ``"ncm"``, nearest class mean; ``"lda"``, linear discriminant analysis; ``"ridge"``, ridge regression of
            one-hot labels. The last two are solved when a prediction is asked for after an update.
        head_features: ``"z"``, the embedding under prompts; ``"q"``, the one without; ``"zq"``, both; ``"layers"``,
            class token and mean patch after each of the last four blocks, from the forward pass that gives z;
            ``"ensemble"``, two heads whose logits are added, on those layers and on those of the pass that gives q.
        metric: of ``head="ncm"``.
        shrinkage, priors: of ``head="lda"``, see :class:`avalanche_f2ocl.heads.LDAHead`.
        projection, ridge, priors: of ``head="ridge"``, see :class:`avalanche_f2ocl.heads.RidgeHead`.

    Raises:
        TypeError: a number of the wrong type.
        ValueError: a value that is not allowed; the message names those that are.

    Example:
        >>> HeadOptions(head="ridge", projection=0).ridge is None
        True
    """

    head: str = "ncm"
    head_features: str = "z"
    metric: str = "cosine"
    shrinkage: float | None = None
    priors: str = "equal"
    projection: int | None = None
    ridge: float | None = None

    def __post_init__(self) -> None:
        for name in ("head", "head_features", "metric", "priors"):
            check_choice(name, getattr(self, name))
        if self.shrinkage is not None:
            check_share("shrinkage", self.shrinkage)
        if self.projection is not None and self.projection != 0:
            check_positive_int("projection", self.projection)
        if self.ridge is not None:
            check_positive("ridge", self.ridge)


@dataclass(frozen=True)
class F2OCLConfig(HeadOptions):
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
            every class.
        prompt_election: whose prompt the mini-batch gets: ``"sample"``, the class of a random sample;
            ``"majority"``, the most frequent class; ``"seen"``, any class seen so far.
        prompt_init: ``"uniform"`` in [-1, 1), ``"normal"`` with deviation 0.02, or ``"zeros"``.
        prompt_position: ``"cls"`` adds the class token's position embedding to prompts.
        readout: the embedding: ``"cls"``, the mean over ``"prompt"`` outputs (CLS where there is no
            prompt), or the mean over ``"patch"`` outputs.
        key_update: ``"mean"``, running mean of the unprompted embeddings; ``"gradient"``, one gradient
            step a mini-batch from a random key (Eq. 9).
        key_lr: step size of ``key_update="gradient"``.
        compensate_drift: whether embeddings are taken relative to what the steps of their prompt have moved them by
            so far, on the mean over the mini-batch of each step; so sums of earlier mini-batches stay comparable with
            later ones while prompts move. Not in the paper. Not for ``"label"``, whose prompts carry the label, nor for
            the election ``"seen"``.
        negatives: see :func:`avalanche_f2ocl.losses.contrastive_prompt_loss`.
        exclude_self: likewise.
        normalise: ``"backbone"``, mean and deviation of the backbone's configuration; ``"unit"``, none.
        inputs: ``"auto"``, uint8 of any size or floats in [0, 1]; ``"normalised"``, floats that are
            passed to the backbone untouched.
        precision, capture, compile: of the frozen backbone, see :class:`avalanche_f2ocl.backbone.vit.PromptableViT`.
        seed: drives every random draw.
        head, head_features, metric, shrinkage, priors, projection, ridge: see :class:`HeadOptions`.

    Raises:
        TypeError: a number of the wrong type.
        ValueError: a value that is not allowed; the message names those that are.

    Example:
        >>> F2OCLConfig(prompt_length=5).prompt_length
        5
    """

    prompt_length: int = 20
    lr: float = 0.1
    betas: tuple[float, float] = (0.9, 0.999)
    lr_decay: float = 1.0
    temperature: float = 0.2
    passes: int = 1
    keys: int = 1
    prompt_assignment: str = "batch"
    prompt_election: str = "sample"
    prompt_init: str = "uniform"
    prompt_position: str = "none"
    readout: str = "cls"
    key_update: str = "mean"
    key_lr: float = 0.1
    compensate_drift: bool = False
    negatives: str = "batch"
    exclude_self: bool = False
    normalise: str = "backbone"
    inputs: str = "auto"
    precision: str = "auto"
    capture: str | bool = "auto"
    compile: bool = False
    seed: int = 0

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
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise TypeError(f"seed={self.seed!r}: must be an int, is {type(self.seed).__name__}")
        for name in CHOICES:
            check_choice(name, getattr(self, name))
        label, seen = self.prompt_assignment == "label", self.prompt_election == "seen"
        if self.compensate_drift and (label or (seen and self.prompt_assignment == "batch")):
            name, value = ("prompt_assignment", "label") if label else ("prompt_election", "seen")
            raise ValueError(f"compensate_drift=True does not go with {name}={value!r}")
