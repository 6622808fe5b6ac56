"""The paper's losses as pure functions."""

import torch
from torch import Tensor
from torch.nn import functional as F


def _balance(y: Tensor, previous_counts: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Weights ``alpha`` of the past and ``beta`` of the present for each sample's class; they add up to one."""
    previous = previous_counts[y].to(dtype)
    present = (y.unsqueeze(0) == y.unsqueeze(1)).sum(1)
    alpha = previous / (previous + present)
    return alpha, 1 - alpha


def contrastive_prompt_loss(
    z: Tensor,
    y: Tensor,
    prototypes: Tensor,
    previous_counts: Tensor,
    temperature: float = 0.2,
    negatives: str = "batch",
    exclude_self: bool = False,
) -> Tensor:
    r"""Contrastive prompt loss of one mini-batch (paper, Eqs. 3-7).

    .. math::
        L = -\frac1B \sum_i \Big( \alpha_i \log \Lambda_1(i)
            + \frac{\beta_i}{|S^+_i|} \sum_{j \in S^+_i} \log \Lambda_2(i, j) \Big)

    :math:`\Lambda_1` compares a sample with its class's prototype and the prototypes of the negatives,
    :math:`\Lambda_2` with the samples of the mini-batch; both are softmaxes of cosine similarities
    over the temperature. :math:`\alpha = n / (n + n^*)` and :math:`\beta = n^* / (n + n^*)` weigh a
    class's :math:`n` earlier samples against its :math:`n^*` present ones. Prototypes get no gradient.

    Args:
        z: embeddings, ``(B, D)`` floating.
        y: rows of the samples' classes in ``prototypes``, ``(B,)`` int64.
        prototypes: ``(C, D)``; only rows in ``y`` are read unless ``negatives="all"``.
        previous_counts: samples per class in earlier mini-batches, ``(C,)``.
        temperature: divides every similarity.
        negatives: the prototypes in :math:`\Gamma_1`: ``"batch"``, one term for each sample of another
            class, as in Eq. 5, or ``"all"``, one term for each other row of ``prototypes``.
        exclude_self: take a sample out of its own positives and denominator (then :math:`\Lambda_2` is
            SupCon). A sample alone in its class then has no second term.

    Returns:
        Scalar, the mean over the mini-batch; never NaN for finite input.

    Raises:
        ValueError: ``negatives`` is neither ``"batch"`` nor ``"all"``.

    Example:
        >>> z, y = torch.eye(2), torch.tensor([0, 1])
        >>> loss = contrastive_prompt_loss(z, y, torch.eye(2), torch.tensor([1, 1]), temperature=1.0)
        >>> round(loss.item(), 4)  # log(1 + 1/e)
        0.3133
    """
    if negatives not in ("batch", "all"):
        raise ValueError(f"negatives={negatives!r}: allowed are 'batch', 'all'")
    prototypes = prototypes.detach()
    alpha, beta = _balance(y, previous_counts, z.dtype)
    z = F.normalize(z, dim=1)
    same_class = y.unsqueeze(0) == y.unsqueeze(1)

    if negatives == "batch":
        to_prototypes = z @ F.normalize(prototypes[y], dim=1).T / temperature
        own, foreign = to_prototypes.diagonal(), ~same_class
    else:
        to_prototypes = z @ F.normalize(prototypes, dim=1).T / temperature
        own = to_prototypes.gather(1, y.unsqueeze(1)).squeeze(1)
        foreign = torch.arange(len(prototypes), device=y.device) != y.unsqueeze(1)
    candidates = to_prototypes.masked_fill(~foreign, -torch.inf)
    log_lambda1 = own - torch.cat([own.unsqueeze(1), candidates], dim=1).logsumexp(1)

    to_samples = z @ z.T / temperature
    positives = same_class
    if exclude_self:
        itself = torch.eye(len(y), dtype=torch.bool, device=y.device)
        positives = same_class & ~itself
        # A low but finite value: with -inf, the row of a lone sample would be all -inf and its gradient NaN.
        to_samples = to_samples.masked_fill(itself, torch.finfo(z.dtype).min)
    log_lambda2 = to_samples - to_samples.logsumexp(1, keepdim=True)
    pulled = torch.where(positives, log_lambda2, 0.0).sum(1) / positives.sum(1).clamp(min=1)

    return -(alpha * log_lambda1 + beta * pulled).mean()


def key_loss(new_keys: Tensor, keys: Tensor, q: Tensor, y: Tensor, previous_counts: Tensor) -> Tensor:
    r"""Key loss summed over the classes of one mini-batch (paper, Eq. 9).

    .. math::
        L = \sum_c \Big( \alpha_c\, d(k'_c, k_c) + \beta_c \sum_{i: y_i = c} d(k'_c, q_i) \Big),
        \qquad d = 1 - \cos

    The paper writes the similarity here but minimises it, so the distance must be meant.

    Args:
        new_keys: ``(P, D)``, the keys that are moved.
        keys: ``(P, D)``, the keys before the mini-batch.
        q: unprompted embeddings, ``(B, D)``.
        y: rows in ``new_keys``, ``(B,)`` int64; every row occurs.
        previous_counts: samples per class in earlier mini-batches, ``(P,)``.

    Returns:
        Scalar.

    Example:
        >>> k, q = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
        >>> key_loss(k, k, q, torch.tensor([0]), torch.tensor([1])).item()  # beta = 1/2, d = 1
        0.5
    """
    alpha, beta = _balance(y, previous_counts, q.dtype)
    pull = (beta * (1 - F.cosine_similarity(new_keys[y], q, dim=1))).sum()
    # There is one alpha for each class, which its samples share equally.
    present = (y.unsqueeze(0) == y.unsqueeze(1)).sum(1)
    stay = (alpha / present * (1 - F.cosine_similarity(new_keys, keys.detach(), dim=1)[y])).sum()
    return stay + pull
