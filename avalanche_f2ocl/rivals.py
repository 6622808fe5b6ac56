"""Other authors' methods on frozen features, as settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from avalanche_f2ocl.arguments import check_choice


@dataclass(frozen=True)
class Rival:
    """A method of other authors.

    Attributes:
        source: authors, title, year, arXiv number.
        options: options of :class:`avalanche_f2ocl.config.FrozenConfig` that make the method.
        boundaries: whether the method must be told where a task ends.
        class_covariances: whether it keeps a covariance for each class.
        departs: how the method differs from its publication; empty if it does not.

    Example:
        >>> RIVALS["slda"].boundaries, RIVALS["slda"].options
        (False, {'head': 'slda'})
    """

    source: str
    options: Mapping[str, Any]
    boundaries: bool = False
    class_covariances: bool = False
    departs: str = ""

    def but(self, departs: str, boundaries: bool = False, **options: Any) -> "Rival":
        """The same method with other options."""
        return Rival(self.source, MappingProxyType({**self.options, **options}), boundaries, False, departs)


_RANPAC = Rival(
    "McDonnell, Gong, Parvaneh, Abbasnejad and van den Hengel, RanPAC: Random Projections and Pre-trained Models for "
    "Continual Learning, 2023, arXiv 2307.02251",
    {"head": "ridge", "projection": 10_000, "penalty": "past", "priors": "counts"},
    departs="The penalty is chosen on every fifth sample of the stream so far, not on the last fifth of a task. "
    "The adapters that are tuned on the first task are left out.",
)
_LAYUP = Rival(
    "Ahrens, Lehmann, Lee and Wermter, Read Between the Layers: Leveraging Multi-Layer Representations for "
    "Rehearsal-Free Continual Learning with Pre-Trained Models, 2023, arXiv 2312.08888",
    {
        "head": "ridge",
        "head_features": "class_tokens",
        "blocks": 6,
        "projection": 0,
        "penalty": "past",
        "priors": "counts",
    },
    departs="The penalty is chosen as RanPAC's is; the authors' code chooses it by accuracy in four-fold "
    "cross-validation on the stored features of a task. Nothing is tuned on the first task.",
)
_F_OAL = Rival(
    "Zhuang, Liu, He, Tong, Zeng, Chen, Wang and Chau, F-OAL: Forward-only Online Analytic Learning with Fast Training "
    "and Low Memory Footprint in Class Incremental Learning, 2024, arXiv 2403.15751",
    {
        "head": "ridge",
        "head_features": "fused",
        "projection": 1000,
        "random_features": "uniform-sigmoid",
        "ridge": 1.0,
        "priors": "counts",
    },
)
_G_ACIL = Rival(
    "Zhuang, Chen, Fang, He, Tong, Wei, Zeng and Chen, GACL: Exemplar-Free Generalized Analytic Continual Learning "
    "(first G-ACIL), 2024, arXiv 2403.15706",
    {
        "head": "ridge",
        "projection": 5000,
        "random_features": "uniform-relu",
        "ridge": 100.0,
        "priors": "counts",
    },
    departs="Each mini-batch is learned once; the authors' scripts learn it three times, augmented.",
)
_SCALED = "The outputs are scaled as in this package: each is divided by its root mean square over the samples."

RIVALS: dict[str, Rival] = {
    "ranpac": _RANPAC,
    "ranpac-task": _RANPAC.but(
        "The penalty is chosen on every fifth sample of a task, not on its last fifth. The adapters that are tuned on "
        "the first task are left out.",
        boundaries=True,
        penalty="task",
    ),
    "ranpac-scaled": _RANPAC.but(_SCALED, priors="equal"),
    "layup": _LAYUP,
    "layup-task": _LAYUP.but("As layup, but each task chooses a penalty.", boundaries=True, penalty="task"),
    "layup-scaled": _LAYUP.but(_SCALED, priors="equal"),
    "f-oal": _F_OAL,
    "f-oal-scaled": _F_OAL.but(_SCALED, priors="equal"),
    "g-acil": _G_ACIL,
    "g-acil-scaled": _G_ACIL.but(_SCALED, priors="equal"),
    "slda": Rival(
        "Hayes and Kanan, Lifelong Machine Learning with Deep Streaming Linear Discriminant Analysis, 2020, "
        "arXiv 1909.01520",
        {"head": "slda"},
        departs="The covariance starts from nothing; the authors initialise it on the first classes.",
    ),
    "klda": Rival(
        "Momeni, Mazumder and Liu, Continual Learning Using a Kernel-Based Method Over Foundation Models, 2024, "
        "arXiv 2412.15571",
        {"head": "klda", "projection": 5000, "random_features": "fourier"},
        departs="The first mini-batch sets the kernel's width unless `gamma` is given; the authors search it for each "
        "backbone.",
    ),
    "randumb": Rival(
        "Prabhu, Sinha, Kumaraguru, Torr, Sener and Dokania, Random Representations Outperform Online Continually "
        "Learned Representations (RanDumb), 2024, arXiv 2402.08823",
        {"head": "lda", "projection": 10_000, "random_features": "fourier"},
        departs="It works on embeddings instead of pixels, without flipped images; the first mini-batch sets the "
        'kernel\'s width, not all images. On embeddings the authors leave the projection out: `head="lda"` alone.',
    ),
    "fecam": Rival(
        "Goswami, Liu, Twardowski and van de Weijer, FeCAM: Exploiting the Heterogeneity of Class Distributions in "
        "Exemplar-Free Continual Learning, 2023, arXiv 2309.14062",
        {"head": "fecam"},
        class_covariances=True,
    ),
}
"""Methods of :meth:`avalanche_f2ocl.FrozenBackbone.rival` and :meth:`avalanche_f2ocl.FrozenModel.rival`, by name."""

WITHOUT_BOUNDARIES = tuple(name for name, rival in RIVALS.items() if not rival.boundaries)


def rival_options(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of another author's method; given options override them.

    Raises:
        ValueError: the name is unknown; the message lists those there are.

    Example:
        >>> rival_options("slda", {"shrinkage": 0.01})
        {'head': 'slda', 'shrinkage': 0.01}
    """
    check_choice("name", name, tuple(RIVALS))
    return {**RIVALS[name].options, **given}
