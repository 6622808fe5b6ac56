"""The methods that can be compared, by their names in results."""

from collections.abc import Callable
from typing import Any

from avalanche_f2ocl import F2OCLStrategy, FrozenBackbone, ViTNCM
from avalanche_f2ocl.baselines import (
    ER,
    L2P,
    MVP,
    CODAPrompt,
    DualPrompt,
    LinearStrategy,
    LwF,
    RandomPrompt,
    SinglePrompt,
)
from avalanche_f2ocl.rivals import RIVALS
from avalanche_f2ocl.strategies.base import BaseStrategy

Methods = dict[str, tuple[Callable[..., BaseStrategy], dict[str, Any]]]

Z = {"head_features": "z"}
OF_THE_PAPER: Methods = {
    "f2ocl": (F2OCLStrategy, Z),
    "f2ocl-seen": (F2OCLStrategy, Z | {"prompt_election": "seen"}),
    "f2ocl-constant-lr": (F2OCLStrategy, Z | {"lr_decay": 0.0}),
    "f2ocl-literal": (F2OCLStrategy.paper, {}),
    "random-prompt": (RandomPrompt, Z),
    "vit-ncm": (ViTNCM, {}),
    "linear": (LinearStrategy, {"lr": 0.001}),
    "linear-mask": (LinearStrategy, {"mask_logits": "batch", "lr": 0.003}),
    "er200": (ER, {"mem_size": 200}),
    "er500": (ER, {"mem_size": 500}),
    "lwf": (LwF, {}),
    "lwf-task-free": (LwF, {"refresh_every": 20}),
    "l2p": (L2P, {"lr": 0.001}),
    "l2p-mask": (L2P, {"mask_logits": "batch"}),
    "l2p-ncm": (L2P, {"mask_logits": "batch", "classifier": "ncm"}),
    "dualprompt": (DualPrompt, {"lr": 0.0003}),
    "dualprompt-mask": (DualPrompt, {"mask_logits": "batch"}),
    "dualprompt-ncm": (DualPrompt, {"mask_logits": "batch", "classifier": "ncm"}),
}

RIDGE = {"head": "ridge", "projection": 0}
LAYERS_0_1 = {"blocks": 4, "blocks_per_head": 4, "vote": "equal"}
"""The layers that heads saw in version 0.1, whose tables are still shown."""
BEST_0_1 = LAYERS_0_1 | {"grid": 1, "zoom": 1.0, "max_drift": None}
PLAIN_PROMPT = {"scale": 5.0, "lr": 0.01, "passes": 1, "augment": "none", "prompt_position": "none"}
BEYOND: Methods = {
    "f2ocl-either": (F2OCLStrategy, {}),
    "f2ocl-best": (F2OCLStrategy.best, {}),
    "f2ocl-best-0.1": (F2OCLStrategy.best, BEST_0_1),
    "f2ocl-ridge-ensemble": (F2OCLStrategy, {**RIDGE, **LAYERS_0_1, "head_features": "ensemble"}),
    "random-prompt-best": (RandomPrompt.best, {}),
    "random-prompt-ridge-ensemble": (RandomPrompt.best, BEST_0_1),
    "vit-lda": (FrozenBackbone, {"head": "lda"}),
    "vit-ridge": (FrozenBackbone, {"head": "ridge", "projection": 2000}),
    "vit-ridge-layers": (FrozenBackbone, {**RIDGE, **LAYERS_0_1, "head_features": "layers"}),
    "vit-ridge-blocks": (FrozenBackbone, {**RIDGE, "head_features": "layers"}),
    "vit-ridge-cells": (FrozenBackbone, {**RIDGE, "head_features": "layers", "grid": 2}),
    "shared-prompt": (SinglePrompt, PLAIN_PROMPT),
    "single-prompt": (SinglePrompt, {"lr": 0.02}),
    "single-prompt-published": (SinglePrompt, {}),
    "coda-prompt": (CODAPrompt, {"lr": 0.005}),
    "coda-prompt-published": (CODAPrompt, {}),
    "mvp": (MVP, {}),
}

ON_FROZEN_FEATURES: Methods = {name: (FrozenBackbone, dict(rival.options)) for name, rival in RIVALS.items()}
"""Other authors' methods, as published."""
FEWER = 2000
"""A number of random features for which a CPU can solve repeatedly."""
ON_FROZEN_FEATURES |= {
    f"{name}-{FEWER}": (make, options | {"projection": FEWER})
    for name, (make, options) in ON_FROZEN_FEATURES.items()
    if options.get("projection", 0) > FEWER
}

METHODS = OF_THE_PAPER | BEYOND | ON_FROZEN_FEATURES


def make_strategy(method: str, **options: Any) -> BaseStrategy:
    """A method's strategy, in float32 so that its figures are the same on every machine; ``options`` override this.

    Raises:
        ValueError: the method is unknown; the message names those there are.
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r}: allowed are {', '.join(METHODS)}")
    make, own = METHODS[method]
    return make(**{"precision": "float32", **own, **options})
