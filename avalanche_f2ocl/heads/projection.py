"""A fixed random projection with ReLU."""

import hashlib

import torch
from torch import Tensor, nn

from avalanche_f2ocl.rng import generator


class RandomProjection(nn.Module):
    """``relu(x R)`` with standard normal R, drawn on the CPU from the seed.

    The matrix is not saved, its SHA-256 is: a file whose matrix this machine would draw otherwise is refused.

    Args:
        dim: length F of the vectors.
        width: features P.
        seed: of the matrix.

    Attributes:
        matrix: R, ``(F, P)`` float32.
        checksum: of the matrix, ``(32,)`` uint8.

    Example:
        >>> RandomProjection(dim=4, width=9)(torch.ones(2, 4)).shape
        torch.Size([2, 9])
    """

    matrix: Tensor
    checksum: Tensor

    def __init__(self, dim: int, width: int, seed: int = 0) -> None:
        super().__init__()
        self.dim, self.seed = dim, seed
        self.register_buffer("matrix", torch.empty(0), persistent=False)
        self.register_buffer("checksum", torch.empty(0, dtype=torch.uint8))
        self.draw(width)

    def draw(self, width: int) -> None:
        """Draws the matrix for ``width`` features."""
        matrix = torch.randn(self.dim, width, generator=generator(self.seed, "projection", width), dtype=torch.float32)
        digest = bytearray(hashlib.sha256(matrix.numpy().tobytes()).digest())
        self.matrix = matrix.to(self.matrix.device)
        self.checksum = torch.frombuffer(digest, dtype=torch.uint8).clone().to(self.checksum.device)

    def forward(self, vectors: Tensor) -> Tensor:
        """``(B, F)`` to ``(B, P)`` float32."""
        return (vectors.float() @ self.matrix).relu()

    def _load_from_state_dict(self, state_dict, prefix, metadata, strict, missing, unexpected, errors):
        saved = state_dict.get(f"{prefix}checksum")
        if saved is not None and not torch.equal(saved.cpu(), self.checksum.cpu()):
            errors.append(f"{prefix}checksum: another random matrix (seed, size, or another version of torch)")
        super()._load_from_state_dict(state_dict, prefix, metadata, strict, missing, unexpected, errors)
