"""Metrics for Avalanche's evaluator that are right on online streams, and the paper's figures of merit."""

from avalanche_f2ocl.metrics.accuracy_matrix import average_accuracy, forgetting
from avalanche_f2ocl.metrics.avalanche_forgetting import OnlineExperienceForgetting, OnlineStreamForgetting
from avalanche_f2ocl.metrics.f2ocl import f2ocl_metrics
from avalanche_f2ocl.metrics.groups import AccuracyMatrix
from avalanche_f2ocl.metrics.prequential import PrequentialAccuracy
from avalanche_f2ocl.metrics.prompts import KeyAccuracy, RandomKeyAccuracy, UpperBound
from avalanche_f2ocl.metrics.training import SkippedBatches, training_metrics

__all__ = [
    "AccuracyMatrix",
    "KeyAccuracy",
    "OnlineExperienceForgetting",
    "OnlineStreamForgetting",
    "PrequentialAccuracy",
    "RandomKeyAccuracy",
    "SkippedBatches",
    "UpperBound",
    "average_accuracy",
    "f2ocl_metrics",
    "forgetting",
    "training_metrics",
]
