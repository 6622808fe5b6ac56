"""Other authors' methods as loops over samples, written from their equations; all in float64 NumPy.

Each takes training vectors (N, F) with classes (N,), test vectors, and what is drawn at random; it gives test scores.
"""

import numpy as np
from sklearn.covariance import oas

EVERY, PENALTIES = 5, [10.0**power for power in range(-8, 9)]


def one_hot(y, classes):
    return np.eye(classes)[y]


def squared_error(x, y, held_x, held_y, penalty, classes):
    gram, cross = x.T @ x + penalty * np.eye(x.shape[1]), x.T @ one_hot(y, classes)
    weight = np.linalg.solve(gram, cross)
    return ((held_x @ weight - one_hot(held_y, classes)) ** 2).mean()


def best_penalty(h, y, last):
    """RanPAC's rule on the ``last`` samples; held out is each fifth of the stream."""
    held, classes = np.arange(len(h))[-last:] % EVERY == EVERY - 1, y.max() + 1
    h, y = h[-last:], y[-last:]
    errors = [squared_error(h[~held], y[~held], h[held], y[held], penalty, classes) for penalty in PENALTIES]
    return PENALTIES[int(np.argmin(errors))]


def ridge(h, y, test, penalty, scaled=False):
    """G and Q sample by sample, and W = (G + lambda I)^-1 Q; scaled: by the root mean square of each output."""
    classes = y.max() + 1
    gram, cross = np.zeros((h.shape[1], h.shape[1])), np.zeros((h.shape[1], classes))
    for one, label in zip(h, y, strict=True):
        gram += np.outer(one, one)
        cross[:, label] += one
    weight = np.linalg.solve(gram + penalty * np.eye(len(gram)), cross)
    return test @ weight / (np.sqrt(((h @ weight) ** 2).mean(0)) if scaled else 1)


def ranpac(x, y, test, matrix=None, scaled=False, last=None):
    """McDonnell et al., 2023; the ``last`` samples, or all, choose the penalty. Without a matrix LayUP's, on its
    features."""
    h, test_h = (np.maximum(0, v @ matrix) if matrix is not None else v for v in (x, test))
    return ridge(h, y, test_h, best_penalty(h, y, last or len(x)), scaled)


def recursive_least_squares(h, y, test_h, penalty, batch=10):
    """F-OAL and G-ACIL: R and W mini-batch by mini-batch, R = I / penalty at first."""
    inverse = np.eye(h.shape[1]) / penalty
    weight = np.zeros((h.shape[1], y.max() + 1))
    for start in range(0, len(h), batch):
        part, labels = h[start : start + batch], one_hot(y[start : start + batch], y.max() + 1)
        inner = np.linalg.inv(np.eye(len(part)) + part @ inverse @ part.T)
        inverse = inverse - inverse @ part.T @ inner @ part @ inverse
        weight = weight + inverse @ part.T @ (labels - part @ weight)
    return test_h @ weight


def f_oal(x, y, test, matrix):
    """Zhuang et al., 2024: sigmoid of a random projection, penalty 1."""
    h, test_h = (1 / (1 + np.exp(-(v @ matrix))) for v in (x, test))
    return recursive_least_squares(h, y, test_h, 1.0)


def g_acil(x, y, test, matrix):
    """Zhuang et al., 2024: ReLU of a random projection, penalty 100."""
    h, test_h = (np.maximum(0, v @ matrix) for v in (x, test))
    return recursive_least_squares(h, y, test_h, 100.0)


def slda(x, y, test, shrinkage=1e-4):
    """Hayes and Kanan, 2020, sample by sample."""
    means, counts = np.zeros((y.max() + 1, x.shape[1])), np.zeros(y.max() + 1)
    sigma = np.ones((x.shape[1], x.shape[1]))
    for t, (one, label) in enumerate(zip(x, y, strict=True)):
        away = one - means[label]
        sigma = (t * sigma + t / (t + 1) * np.outer(away, away)) / (t + 1)
        means[label] += away / (counts[label] + 1)
        counts[label] += 1
    weight = np.linalg.pinv((1 - shrinkage) * sigma + shrinkage * np.eye(len(sigma))) @ means.T
    return test @ weight - 0.5 * (means.T * weight).sum(0)


def fourier(v, matrix, phases, gamma):
    return np.sqrt(2 / len(phases)) * np.cos(np.sqrt(2 * gamma) * v @ matrix + phases)


def scale(first):
    """scikit-learn's gamma="scale"."""
    return 1 / (first.shape[1] * first.var())


def klda(x, y, test, matrix, phases, gamma):
    """Momeni et al., 2024, class by class; minus the squared Mahalanobis distance, which is twice the score."""
    h, test_h = (fourier(v, matrix, phases, gamma) for v in (x, test))
    means, scatter = [], 0
    for label in range(y.max() + 1):
        own = h[y == label]
        means.append(own.mean(0))
        scatter = scatter + (own - means[-1]).T @ (own - means[-1])
    inverse = np.linalg.pinv(scatter / len(x), hermitian=True)
    away = np.stack(means) - test_h[:, None]
    return -np.einsum("nci,ij,ncj->nc", away, inverse, away) / 2


def randumb(x, y, test, matrix, phases, gamma):
    """Prabhu et al., 2024: class means under the covariance of the centred features that scikit-learn's OAS shrinks."""
    h, test_h = (fourier(v, matrix, phases, gamma) for v in (x, test))
    means = np.stack([h[y == label].mean(0) for label in range(y.max() + 1)])
    covariance, _ = oas(h - means[y], assume_centered=True)
    weight = np.linalg.solve(covariance, means.T)
    return test_h @ weight - 0.5 * (means.T * weight).sum(0)


def fecam(x, y, test):
    """Goswami et al., 2023, as its code for ViTs: shrunk by 1 V_1 I, then scaled to unit variances."""
    x, test = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (x, test))
    scores = []
    for label in range(y.max() + 1):
        own = x[y == label]
        covariance = np.cov(own.T)
        covariance = covariance + np.diagonal(covariance).mean() * np.eye(len(covariance))
        deviations = np.sqrt(np.diagonal(covariance))
        inverse = np.linalg.pinv(covariance / np.outer(deviations, deviations))
        away = test - own.mean(0)
        scores.append(-np.diagonal(away @ inverse @ away.T))
    return np.stack(scores, axis=1)
