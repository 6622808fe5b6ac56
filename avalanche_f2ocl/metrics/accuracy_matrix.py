"""The paper's figures of merit, as pure functions of the accuracy matrix.

``T[i, j]`` is the accuracy on the test samples of group j after training on group i, among the classes
seen by then. Entries with j > i are ignored.
"""

import numpy as np
from numpy.typing import ArrayLike


def _square(T: ArrayLike) -> np.ndarray:
    T = np.asarray(T, dtype=float)
    if T.ndim != 2 or T.shape[0] != T.shape[1] or T.size == 0:
        raise ValueError(f"T has shape {T.shape}: must be (n, n) with n at least 1")
    return T


def average_accuracy(T: ArrayLike, samples: ArrayLike | None = None) -> float:
    r"""Average final accuracy :math:`A_n = \frac1n \sum_\tau T_{n,\tau}`.

    Args:
        T: accuracy matrix, ``(n, n)``.
        samples: numbers of test samples of the groups, ``(n,)``, to weight the groups by them.

    Raises:
        ValueError: ``T`` is not square, or ``samples`` has not one number for each group.

    Example:
        >>> average_accuracy([[0.9, 0], [0.5, 0.7]])
        0.6
        >>> average_accuracy([[0.9, 0], [0.5, 0.7]], samples=[30, 10])
        0.55
    """
    last = _square(T)[-1]
    if samples is not None and np.shape(samples) != last.shape:
        raise ValueError(f"samples have shape {np.shape(samples)}: must be {last.shape}")
    return float(np.average(last, weights=None if samples is None else np.asarray(samples)))


def forgetting(T: ArrayLike) -> float:
    r"""Average forgetting: the mean over earlier groups of the drop from a group's best accuracy.

    .. math::
        F_n = \frac1{n-1} \sum_{\tau<n} \max_{\tau \le \tau' < n} (T_{\tau',\tau} - T_{n,\tau})

    Args:
        T: ``(n, n)``.

    Returns:
        F_n; NaN for a single group, which has nothing to forget; negative if groups improve.

    Raises:
        ValueError: ``T`` is not square.

    Example:
        >>> round(forgetting([[0.9, 0, 0], [0.95, 0.8, 0], [0.5, 0.6, 0.7]]), 3)  # (0.45 + 0.2) / 2
        0.325
    """
    T = _square(T)
    last = len(T) - 1
    if last == 0:
        return float("nan")
    return float(np.mean([T[group:last, group].max() - T[last, group] for group in range(last)]))
