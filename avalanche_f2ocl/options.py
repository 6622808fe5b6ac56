"""What options there are, each declared once: name, type with what is allowed, default, check."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from avalanche_f2ocl.arguments import check_choice, check_int, check_positive, check_positive_int, check_share
from avalanche_f2ocl.extensions import EXTENSIBLE, known_name

DEFAULT_BACKBONE = "vit_base_patch16_224.augreg_in21k"

Readout = Literal["auto", "cls", "prompt", "patch"]
PromptAssignment = Literal["batch", "label", "shared"] | Callable[..., Any]
PromptElection = Literal["sample", "majority", "seen"] | Callable[..., Any]
PromptInit = Literal["uniform", "normal", "zeros"]
PromptPosition = Literal["none", "cls"]
Normalise = Literal["backbone", "unit"]
Inputs = Literal["auto", "normalised"]
Fit = Literal["auto", "crop", "squash", "pad"]
Interpolation = Literal["bicubic", "bilinear"]
Precision = Literal["auto", "float32", "bfloat16"]
Capture = Literal["auto", True, False]
HeadName = Literal["ncm", "lda", "ridge", "slda", "klda", "fecam"]
HeadChoice = HeadName | Callable[..., Any]
HeadFeatures = Literal["z", "q", "zq", "either", "layers", "ensemble"]
FrozenFeatures = Literal["q", "layers", "class_tokens", "fused"]
Metric = Literal["cosine", "euclidean"]
Vote = Literal["evidence", "equal"]
Priors = Literal["equal", "counts"]
RandomFeatures = Literal["relu", "uniform-relu", "uniform-sigmoid", "fourier"]
Penalty = Literal["gcv", "past"]
FrozenPenalty = Literal["gcv", "past", "task"]


def choices(config: Any) -> dict[str, tuple[Any, ...]]:
    """What is allowed, by option, where the type of a field (or of a function's parameter) lists it.

    Example:
        >>> choices(HeadOptions)["metric"]
        ('cosine', 'euclidean')
    """
    listed = {}
    for name, hint in get_type_hints(config).items():
        for part in (hint, *get_args(hint)):  # those of a union, too
            if get_origin(part) is Literal:
                listed[name] = get_args(part)
    return listed


@dataclass(frozen=True)
class Options:
    """Base of options: what a field's type lists is checked at construction.

    A class or function of a user's own becomes its name, see :func:`avalanche_f2ocl.extensions.register`.

    Raises:
        TypeError: a number of the wrong type.
        ValueError: a value that is not allowed; the message names those that are.
    """

    def __post_init__(self) -> None:
        for name, allowed in choices(type(self)).items():
            value = getattr(self, name)
            if name in EXTENSIBLE:
                object.__setattr__(self, name, known_name(name, value, allowed))
            else:
                check_choice(name, value, allowed)


@dataclass(frozen=True)
class EncoderOptions(Options):
    """How a frozen backbone sees images, and the seed; checked at construction.

    Args:
        readout: the embedding: ``"auto"``, what the stock model pools, from the outputs of its own tokens; ``"cls"``;
            the mean over ``"prompt"`` outputs (CLS where there is no prompt), or over ``"patch"`` outputs.
        normalise: ``"backbone"``, mean and deviation of the backbone's configuration; ``"unit"``, none.
        inputs: ``"auto"``, uint8 of any size or floats in [0, 1]; ``"normalised"``, floats that are
            passed to the backbone untouched.
        fit: how images become the backbone's square, see :class:`avalanche_f2ocl.image_fit.ImageFit`.
        precision: of the frozen backbone, see :class:`avalanche_f2ocl.backbone.PromptableViT`.
        seed: drives every random draw.

    Raises:
        TypeError: a number of the wrong type.
        ValueError: a value that is not allowed; the message names those that are.

    Example:
        >>> EncoderOptions(readout="patch").precision
        'auto'
    """

    readout: Readout = "auto"
    normalise: Normalise = "backbone"
    inputs: Inputs = "auto"
    fit: Fit = "auto"
    precision: Precision = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("seed", self.seed)


@dataclass(frozen=True)
class HeadOptions(Options):
    """Which classifier predicts, and from what; checked at construction.

    Args:
        head: ``"ncm"``, nearest class mean; ``"lda"``, linear discriminant analysis; ``"ridge"``, ridge regression of
            one-hot labels; as others publish it, ``"slda"``, see :class:`avalanche_f2ocl.heads.SLDAHead`, ``"klda"``,
            see :class:`avalanche_f2ocl.heads.KLDAHead`, and ``"fecam"``, see
            :class:`avalanche_f2ocl.heads.FeCAMHead`. All but the first are solved when a prediction is asked for after
            an update. Or a class of your own, see docs/extending.md.
        head_features: ``"z"``, the embedding under prompts; ``"q"``, the one without; ``"zq"``, both; ``"either"``,
            both with a head each, and z has a say once it has proved better, see
            :class:`avalanche_f2ocl.heads.EitherHead`; ``"layers"``, class token and mean patches after blocks, from
            the forward pass that gives z; ``"ensemble"``, those and the layers of the pass that gives q. Layers have
            several heads, whose logits are added up.
        blocks: how many last blocks give layers; None for all of them, see
            :func:`avalanche_f2ocl.heads.layers.choose_layers`.
        blocks_per_head: consecutive blocks that share a head; None as there.
        grid: patches of layers are averaged over ``grid * grid`` cells of the image, in the pass that gives z.
        vote: how much each of several ridge regressions has to say, see :class:`avalanche_f2ocl.heads.EnsembleHead`.
        metric: of ``head="ncm"``.
        shrinkage: of ``head="lda"``, see :class:`avalanche_f2ocl.heads.LDAHead`, ``"slda"`` or ``"fecam"``.
        priors: of ``head="lda"`` or ``"ridge"``.
        projection: random features that ``head="ridge"``, ``"lda"`` or ``"klda"`` makes of what it sees, see there.
        random_features, gamma: of what kind, see :func:`avalanche_f2ocl.heads.projection.random_features`.
        ridge: penalty of ``head="ridge"``, see :class:`avalanche_f2ocl.heads.RidgeHead`; None to choose it.
        penalty: how: ``"gcv"``, by generalised cross-validation; ``"past"``, by samples held out of the stream so far,
            see :class:`avalanche_f2ocl.heads.HeldOutRidgeHead`.

    Raises:
        TypeError: a number of the wrong type.
        ValueError: a value that is not allowed; the message names those that are.

    Example:
        >>> HeadOptions(head="ridge", projection=0).ridge is None
        True
    """

    head: HeadChoice = "ncm"
    head_features: HeadFeatures = "z"
    blocks: int | None = None
    blocks_per_head: int | None = None
    grid: int = 1
    vote: Vote = "evidence"
    metric: Metric = "cosine"
    shrinkage: float | None = None
    priors: Priors = "equal"
    projection: int | None = None
    random_features: RandomFeatures = "relu"
    gamma: float | None = None
    ridge: float | None = None
    penalty: Penalty = "gcv"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive_int("grid", self.grid)
        for name in ("blocks", "blocks_per_head"):
            if getattr(self, name) is not None:
                check_positive_int(name, getattr(self, name))
        if self.shrinkage is not None:
            check_share("shrinkage", self.shrinkage)
        if self.projection is not None and self.projection != 0:
            check_positive_int("projection", self.projection)
        for name in ("ridge", "gamma"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        if self.ridge is not None and isinstance(self.head, str) and self.head != "ridge":
            raise ValueError(f"ridge={self.ridge!r}: head={self.head!r} has no penalty; it is for head='ridge'")
