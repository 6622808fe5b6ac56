"""All of the paper's metrics."""

from avalanche.evaluation import PluginMetric

from avalanche_f2ocl.metrics.groups import AccuracyMatrix
from avalanche_f2ocl.metrics.prompts import KeyAccuracy, RandomKeyAccuracy, UpperBound


def f2ocl_metrics() -> list[PluginMetric]:
    """A_n, A_n_samples, F_n and A_k at every evaluation; UB and random_key at the end of the stream.

    The metrics are for Avalanche's ``EvaluationPlugin``. Values are fractions; their names end in
    ``/eval_phase/<stream>_stream``. A_k, UB and random_key need prompts: other strategies do not emit them. A stream
    with another number of experiences than the training stream has no groups, and so neither A_n nor F_n; see
    :class:`avalanche_f2ocl.metrics.groups.GroupMetric`.

    Example:
        >>> [str(metric) for metric in f2ocl_metrics()]
        ['A_n', 'A_k', 'UB', 'random_key']
    """
    return [AccuracyMatrix(), KeyAccuracy(), UpperBound(), RandomKeyAccuracy()]
