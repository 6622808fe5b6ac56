"""Fixed random features of embeddings."""

import hashlib
import math

import torch
from torch import Tensor

from avalanche_f2ocl.options import RandomFeatures
from avalanche_f2ocl.rng import generator
from avalanche_f2ocl.state.rows import Undoable


class RandomProjection(Undoable):
    """``relu(x R)`` with standard normal R, drawn on the CPU from the seed; other distributions and a sigmoid too.

    A file holds the SHA-256 of the matrix instead of the matrix, and is refused if this machine draws another matrix.

    Args:
        dim: length F of the vectors.
        width: number P of features.
        seed: seed of the matrix.
        kind: ``"relu"``, as above; or ``"uniform-relu"`` or ``"uniform-sigmoid"``, a ReLU or a sigmoid with R uniform
            in :math:`\\pm 1 / \\sqrt F`, as PyTorch initialises a linear layer.

    Attributes:
        matrix: R, ``(F, P)`` float32.
        checksum: SHA-256 of the matrix, ``(32,)`` uint8.

    Example:
        >>> RandomProjection(dim=4, width=9)(torch.ones(2, 4)).shape
        torch.Size([2, 9])
    """

    matrix: Tensor
    checksum: Tensor

    def __init__(self, dim: int, width: int, seed: int = 0, kind: RandomFeatures = "relu") -> None:
        super().__init__()
        self.dim, self.seed, self.kind = dim, seed, kind
        self.register_buffer("matrix", torch.empty(0), persistent=False)
        self.register_buffer("checksum", torch.empty(0, dtype=torch.uint8))
        self.draw(width)

    def draw(self, width: int) -> None:
        """Draws the matrix for ``width`` features."""
        drawn = generator(self.seed, "projection", width)
        if self.kind.startswith("uniform"):
            matrix = (2 * torch.rand(self.dim, width, generator=drawn) - 1) / math.sqrt(self.dim)
        else:
            matrix = torch.randn(self.dim, width, generator=drawn, dtype=torch.float32)
        digest = bytearray(hashlib.sha256(matrix.numpy().tobytes()).digest())
        self.matrix = matrix.to(self.matrix.device)
        self.checksum = torch.frombuffer(digest, dtype=torch.uint8).clone().to(self.checksum.device)

    def forward(self, vectors: Tensor) -> Tensor:
        """The features of vectors: ``(B, F)`` to ``(B, P)`` float32."""
        products = vectors.float() @ self.matrix
        return products.sigmoid() if self.kind == "uniform-sigmoid" else products.relu()

    def see(self, vectors: Tensor) -> None:
        """Learns what it needs, for example a kernel width, from vectors ``(B, F)`` that are about to be learned."""

    def clear(self) -> None:
        """Forgets what :meth:`see` learned."""

    def _load_from_state_dict(self, state_dict, prefix, metadata, strict, missing, unexpected, errors):
        saved = state_dict.get(f"{prefix}checksum")
        if saved is not None and not torch.equal(saved.cpu(), self.checksum.cpu()):
            errors.append(f"{prefix}checksum: another random matrix (seed, size, or another version of torch)")
        super()._load_from_state_dict(state_dict, prefix, metadata, strict, missing, unexpected, errors)


class FourierFeatures(RandomProjection):
    r"""Random Fourier features of the kernel :math:`\exp(-\gamma \lVert x - x' \rVert^2)`:

    .. math:: \sqrt{2 / P} \, \cos(\sqrt{2 \gamma} \, x R + b)

    with standard normal R and b uniform in :math:`[0, 2 \pi)`.

    Source: Rahimi and Recht, Random Features for Large-Scale Kernel Machines, 2007.

    Args:
        dim, width, seed: those of :class:`RandomProjection`.
        gamma: :math:`\gamma` of the kernel; None for 1 / (F times the variance of all components of the first
            mini-batch), which is the ``"scale"`` of scikit-learn's ``RBFSampler``.

    Attributes:
        phases: b, ``(P,)`` float32.
        gamma: :math:`\gamma`, float64 scalar; 0 before the first mini-batch.

    Example:
        >>> features = FourierFeatures(dim=4, width=3000, gamma=0.5)(torch.eye(4))
        >>> round((features[0] @ features[1]).item(), 1)  # exp(-0.5 * 2)
        0.4
    """

    phases: Tensor
    gamma: Tensor

    def __init__(self, dim: int, width: int, seed: int = 0, gamma: float | None = None) -> None:
        super().__init__(dim, width, seed, "fourier")
        self._given = 0.0 if gamma is None else gamma
        self._before: Tensor | None = None
        self.register_buffer("gamma", torch.tensor(self._given, dtype=torch.float64))

    def draw(self, width: int) -> None:
        super().draw(width)
        phases = 2 * math.pi * torch.rand(width, generator=generator(self.seed, "phases", width))
        self.register_buffer("phases", phases.to(self.matrix.device), persistent=False)

    def forward(self, vectors: Tensor) -> Tensor:
        """``(B, F)`` to ``(B, P)`` float64, since under a wide kernel features differ only in their last digits."""
        turns = (2 * self.gamma).sqrt() * (vectors.double() @ self.matrix.double()) + self.phases
        return math.sqrt(2 / len(self.phases)) * turns.cos()

    @torch.no_grad()
    def see(self, vectors: Tensor) -> None:
        variance = vectors.double().var(correction=0).clamp(min=torch.finfo(torch.float32).tiny)
        self.gamma = torch.where(self.gamma > 0, self.gamma, 1 / (self.dim * variance))

    def clear(self) -> None:
        self.gamma = torch.full_like(self.gamma, self._given)

    def begin_block(self) -> None:
        self._before = self.gamma

    def end_block(self, keep: bool) -> None:
        if not keep and self._before is not None:
            self.gamma = self._before
        self._before = None


def random_features(
    dim: int, width: int, seed: int = 0, kind: RandomFeatures = "relu", gamma: float | None = None
) -> RandomProjection:
    """Makes random features of a kind, see :class:`RandomProjection` and :class:`FourierFeatures`.

    Args:
        dim: length F of the vectors.
        width: number P of features.
        seed: seed of the random matrix.
        kind: ``"relu"``, ``"uniform-relu"``, ``"uniform-sigmoid"`` or ``"fourier"``.
        gamma: of the kernel of ``"fourier"``; None to take it from the first mini-batch.

    Example:
        >>> random_features(4, 9, kind="uniform-sigmoid")(torch.zeros(1, 4))[0, 0].item()
        0.5
    """
    if kind == "fourier":
        return FourierFeatures(dim, width, seed, gamma)
    return RandomProjection(dim, width, seed, kind)
