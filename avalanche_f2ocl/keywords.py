"""The keywords of models' constructors, for editors and type checkers.

Names and types are those of :mod:`avalanche_f2ocl.config`, which has the defaults, checks and meanings.
"""

from pathlib import Path
from typing import Literal, TypedDict

import torch

from avalanche_f2ocl.config import F2OCLConfig, FrozenConfig
from avalanche_f2ocl.options import (
    Capture,
    Fit,
    FrozenFeatures,
    FrozenPenalty,
    HeadChoice,
    HeadFeatures,
    Inputs,
    Metric,
    Normalise,
    Penalty,
    Precision,
    Priors,
    PromptAssignment,
    PromptElection,
    PromptInit,
    PromptPosition,
    RandomFeatures,
    Readout,
    Vote,
)


class PlaceKeywords(TypedDict, total=False):
    """Where a backbone comes from, and the device it is put on."""

    weights: str | Path | None
    image_size: int | None
    device: str | torch.device | None


class EncoderKeywords(PlaceKeywords, total=False):
    """Keywords of the backbone's place and of :class:`avalanche_f2ocl.options.EncoderOptions`."""

    readout: Readout
    normalise: Normalise
    inputs: Inputs
    fit: Fit
    precision: Precision
    seed: int


class _HeadKeywords(EncoderKeywords, total=False):
    head: HeadChoice
    blocks: int | None
    blocks_per_head: int | None
    grid: int
    vote: Vote
    metric: Metric
    shrinkage: float | None
    priors: Priors
    projection: int | None
    random_features: RandomFeatures
    gamma: float | None
    ridge: float | None


class FrozenKeywords(_HeadKeywords, total=False):
    """Keywords of :class:`avalanche_f2ocl.FrozenModel`."""

    config: FrozenConfig | None
    head_features: FrozenFeatures
    penalty: FrozenPenalty


class F2OCLKeywords(_HeadKeywords, total=False):
    """Keywords of :class:`avalanche_f2ocl.F2OCLModel`."""

    config: F2OCLConfig | None
    head_features: HeadFeatures
    penalty: Penalty
    prompt_length: int
    lr: float
    betas: tuple[float, float]
    lr_decay: float
    temperature: float
    passes: int
    keys: int
    prompt_assignment: PromptAssignment
    prompt_election: PromptElection
    prompt_init: PromptInit
    prompt_position: PromptPosition
    key_update: Literal["mean", "gradient"]
    key_lr: float
    compensate_drift: bool
    max_drift: float | None
    zoom: float
    negatives: Literal["batch", "all"]
    exclude_self: bool
    capture: Capture
    compile: Literal[True, False]
