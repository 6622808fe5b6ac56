"""All options, each declared once: its name, its type (which lists the allowed values), its default and its check."""

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
    """The allowed values of each option whose type lists them.

    Args:
        config: a class whose fields are options, or a function whose parameters are.

    Example:
        >>> choices(HeadOptions)["metric"]
        ('cosine', 'euclidean')
    """
    listed = {}
    for name, hint in get_type_hints(config).items():
        for part in (hint, *get_args(hint)):  # also the members of a union
            if get_origin(part) is Literal:
                listed[name] = get_args(part)
    return listed


@dataclass(frozen=True)
class Options:
    """Base class of options; each value is checked at construction against those that the field's type lists.

    A user's own class or function is replaced by its name, see :func:`avalanche_f2ocl.extensions.register`.

    Raises:
        TypeError: a number has the wrong type.
        ValueError: a value is not allowed; the message names those that are.
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
        readout: which outputs give the embedding: ``"auto"``, those that timm's own model pools, prompts left out;
            ``"cls"``, the class token; ``"prompt"``, the mean over prompts (the class token where there is no prompt);
            ``"patch"``, the mean over patches.
        normalise: ``"backbone"``, by mean and standard deviation of the backbone's configuration; ``"unit"``, not at
            all.
        inputs: ``"auto"``, uint8 of any size or floats in [0, 1]; ``"normalised"``, floats that are
            passed to the backbone unchanged.
        fit: how images become the backbone's square: ``"auto"``, ``"crop"``, ``"squash"`` or ``"pad"``; see
            :class:`avalanche_f2ocl.image_fit.ImageFit`.
        precision: dtype in which the frozen backbone computes: ``"auto"``, ``"float32"`` or ``"bfloat16"``; see
            :class:`avalanche_f2ocl.backbone.PromptableViT`.
        seed: seed of every random draw.

    Raises:
        TypeError: a number has the wrong type.
        ValueError: a value is not allowed; the message names those that are.

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
            one-hot labels. As their authors publish them: ``"slda"``, see :class:`avalanche_f2ocl.heads.SLDAHead`;
            ``"klda"``, see :class:`avalanche_f2ocl.heads.KLDAHead`; and ``"fecam"``, see
            :class:`avalanche_f2ocl.heads.FeCAMHead`. All heads but ``"ncm"`` are solved at the first prediction after
            an update. A class of your own is also allowed, see docs/extending.md.
        head_features: ``"z"``, the embedding under prompts; ``"q"``, the embedding without; ``"zq"``, both;
            ``"either"``, one head on each, where the head on z counts once it has proved to help, see
            :class:`avalanche_f2ocl.heads.EitherHead`; ``"layers"``, class token and mean patch after blocks, from
            the forward pass that gives z; ``"ensemble"``, these and the layers of the pass that gives q. Layers are
            shared by several heads, whose logits are added up.
        blocks: how many of the last blocks give layers; None means all of them, see
            :func:`avalanche_f2ocl.heads.layers.choose_layers`.
        blocks_per_head: consecutive blocks that share a head; None leaves the choice to
            :func:`avalanche_f2ocl.heads.layers.choose_layers`.
        grid: patches of layers are averaged over ``grid * grid`` cells of the image, in the pass that gives z.
        vote: how several ridge regressions are weighted, see :class:`avalanche_f2ocl.heads.EnsembleHead`.
        metric: similarity of ``head="ncm"``: ``"cosine"`` or ``"euclidean"``.
        shrinkage: of the covariance of ``head="lda"``, ``"slda"`` or ``"fecam"``, see
            :class:`avalanche_f2ocl.heads.LDAHead`.
        priors: of the classes in ``head="lda"`` or ``"ridge"``: ``"equal"``, or by ``"counts"`` of their samples.
        projection: number of random features that ``head="ridge"``, ``"lda"`` or ``"klda"`` makes of its input; see
            the head's class.
        random_features, gamma: kind of random features, and the width of their kernel; see
            :func:`avalanche_f2ocl.heads.projection.random_features`.
        ridge: penalty of ``head="ridge"``, see :class:`avalanche_f2ocl.heads.RidgeHead`; None to have it chosen.
        penalty: how the penalty is chosen: ``"gcv"``, by generalised cross-validation; ``"past"``, by samples held out
            of the stream so far, see :class:`avalanche_f2ocl.heads.HeldOutRidgeHead`.

    Raises:
        TypeError: a number has the wrong type.
        ValueError: a value is not allowed; the message names those that are.

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
