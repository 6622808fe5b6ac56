"""The parts of MVP's loss, as functions.

Source: Moon et al., Online Class Incremental Learning on Stochastic Blurry Task Boundary via Mask and Visual Prompt
Tuning, 2023.
"""

import torch
from torch import Tensor
from torch.nn import functional as F


def contrastive_key_loss(similarity: Tensor, rows: Tensor, keys: Tensor, counts: Tensor) -> Tensor:
    """Draws chosen keys to their queries and pushes keys apart, less strongly the more often they were chosen.

    With distances d = 1 - cosine and a mass of 1 + count for each key, the loss is ``-log(E / (D + E) + 1e-6)``, where
    D is the mean of ``exp(d(query, key) / mass)`` over samples, and E that of ``exp(d(key, other) / mass)`` over
    samples and keys.

    Args:
        similarity: cosine similarities of queries to the chosen keys, ``(B, 1)``.
        rows: rows of the chosen keys, ``(B,)`` int64.
        keys: ``(M, D)``.
        counts: how often each key was chosen before, ``(M,)``.

    Returns:
        Scalar.
    """
    unit, mass = F.normalize(keys, dim=1), (1 + counts[rows]).unsqueeze(1)
    to_query = ((1 - similarity) / mass).exp().mean()
    to_others = ((1 - unit[rows] @ unit.T) / mass).exp().mean()
    return -torch.log(to_others / (to_query + to_others) + 1e-6)


def gradient_similarity(z: Tensor, logits: Tensor, gate: Tensor, targets: Tensor) -> Tensor:
    """Similarity of a sample's and the mini-batch's gradients of the cross-entropy by the weight of the sample's class.

    Args:
        z: embeddings, ``(B, D)``.
        logits: a linear function of z, times ``gate``, ``(B, C)``.
        gate: ``(B, C)``.
        targets: ``(B,)`` int64.

    Returns:
        Cosine similarities, ``(B,)``.
    """
    # The gradient of sample j's loss by the weight of class c is (p_jc - 1[c = y_j]) gate_jc z_j.
    factors = (logits.softmax(1) - F.one_hot(targets, logits.shape[1])) * gate
    own = factors.gather(1, targets.unsqueeze(1)) * z
    batch = (factors.T @ z / len(z))[targets]
    return F.cosine_similarity(own, batch, dim=1)


def adaptive_scale(z: Tensor, weight: Tensor, margin: float) -> Tensor:
    """The divisor of features, which is small if the class's weight already fits them.

    Args:
        z: embeddings, ``(B, D)``.
        weight: weights of each sample's class, ``(B, D)``.
        margin: least divisor.

    Returns:
        ``(B, 1)``.
    """
    return (1 - F.cosine_similarity(weight, z, dim=1) + margin).unsqueeze(1)
