"""The forms in which a sample could be kept, and whether a tensor holds one of them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby

import torch
from torch import Tensor
from torch.nn import functional as F

from avalanche_f2ocl.models.base import BaseModel
from avalanche_f2ocl.rng import generator

IMAGE_TOLERANCE = 0.02
"""Largest distance of unit vectors that count as the same image; it covers rounding to uint8 after resizing."""

VECTOR_TOLERANCE = 0.003
"""Largest distance of unit vectors that count as the same tokens or embedding; it covers rounding to 16 bits."""

BATCH, SKETCH, CHUNK = 64, 64, 1 << 22


class SampleForms:
    """Images, prepared images, tokens and embeddings of samples, as short random projections of unit vectors.

    A projection to 64 numbers keeps distances to within about a tenth, so thousands of large images can be compared
    with everything held without being in memory themselves.

    Args:
        model: the model that makes tokens and embeddings.
        samples: items of (image ``(C, H, W)``, class id, ...).
        with_embedding: for each sample, whether its embedding is looked for.
    """

    def __init__(self, model: BaseModel, samples: Sequence[tuple], with_embedding: Sequence[bool]) -> None:
        self._projections: dict[int, Tensor] = {}
        parts: dict[tuple, list[tuple[Tensor, Tensor]]] = defaultdict(list)
        vectors = []
        for index, images in _batches(samples):
            model.check(images)
            tokens, prepared, embeddings = _encode(model, images.to(model.device))
            vectors.append((index, embeddings))
            parts["image", tuple(images.shape[1:])].append((index, standardise(images)))
            if prepared.shape != images.shape:
                parts["prepared image", tuple(prepared.shape[1:])].append((index, standardise(prepared)))
            parts["tokens", tokens[0].numel()].append((index, _unit(tokens.flatten(1))))
        index, embeddings = (torch.cat(part) for part in zip(*vectors, strict=True))
        labels = torch.tensor([int(samples[i][1]) for i in index.tolist()])
        embeddings = embeddings.transpose(0, 1)
        telling = torch.tensor(with_embedding)[index] & ~_like_their_mean(embeddings, labels)
        for vector, own in zip(embeddings, telling, strict=True):
            parts["embedding", vector.shape[1]].append((index[own], _unit(vector[own])))
        self._forms = {form: self._sketched(pairs) for form, pairs in parts.items()}

    def find(self, tensor: Tensor) -> list[tuple[str, int]]:
        """The forms of samples that a tensor contains, as pairs of a form and a sample's index."""
        hits = set()
        if tensor.is_complex() or tensor.dtype == torch.bool:
            return []
        for (what, shape), (index, sketches) in self._forms.items():
            tolerance = IMAGE_TOLERANCE if isinstance(shape, tuple) else VECTOR_TOLERANCE
            for rows in _as_images(tensor, shape) if isinstance(shape, tuple) else _as_vectors(tensor, shape):
                for chunk in rows.split(max(1, CHUNK // max(rows[0].numel(), len(index), 1))):
                    chunk = chunk.cpu()
                    unit = standardise(chunk) if isinstance(shape, tuple) else _unit(chunk)
                    sketch = self._sketch(unit)
                    near = torch.cdist(torch.cat([sketch, -sketch]), sketches) < tolerance
                    hits |= {(what, i) for i in index[near.any(0)].tolist()}
        return sorted(hits)

    def _sketched(self, pairs: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        index, sketches = torch.cat([i for i, _ in pairs]), torch.cat([self._sketch(unit) for _, unit in pairs])
        some = sketches.norm(dim=1) > 0  # leaves out images of a single colour
        return index[some], sketches[some]

    def _sketch(self, unit: Tensor) -> Tensor:
        length = unit.shape[1]
        if length not in self._projections:
            draw = torch.randn(length, SKETCH, generator=generator(0, "sketch", length))
            self._projections[length] = draw / SKETCH**0.5
        return (unit @ self._projections[length]).double()  # cdist's shortcut is inexact in single precision


def standardise(images: Tensor) -> Tensor:
    """Images ``(N, C, H, W)`` as unit vectors ``(N, C * H * W)`` that scaling a channel does not change.

    An image of a single colour gives zeros.
    """
    pixels = images.flatten(2).float()
    centred = pixels - pixels.mean(2, keepdim=True)
    spread = centred.square().mean(2, keepdim=True).sqrt()
    plain = spread <= 1e-4 * pixels.abs().amax(2, keepdim=True)
    return _unit((centred / spread).masked_fill(plain, 0).flatten(1))


def _unit(vectors: Tensor) -> Tensor:
    return F.normalize(vectors.float(), dim=1)


def _as_images(tensor: Tensor, shape: tuple[int, int, int]) -> Iterator[Tensor]:
    """A tensor as images ``(N, C, H, W)``, if its shape allows it, with channels first and with channels last."""
    channels, height, width = shape
    if tensor.numel() and tensor.numel() % (channels * height * width) == 0:
        yield tensor.reshape(-1, channels, height, width)
        if channels > 1:
            yield tensor.reshape(-1, height, width, channels).permute(0, 3, 1, 2)


def _as_vectors(tensor: Tensor, length: int) -> Iterator[Tensor]:
    """A tensor as vectors ``(N, length)``, if its shape allows it: as a whole, and along any dimension but the last."""
    if tensor.numel() and tensor.numel() % length == 0:
        yield tensor.reshape(-1, length)
        for dim, size in enumerate(tensor.shape[:-1]):
            if size == length:
                yield tensor.movedim(dim, -1).reshape(-1, length)


def _batches(samples: Sequence[tuple]) -> Iterator[tuple[Tensor, Tensor]]:
    """Indices and images of one shape, ``(B,)`` and ``(B, C, H, W)``, in the order of the samples."""
    numbered = ((i, samples[i][0]) for i in range(len(samples)))
    for _, same in groupby(numbered, lambda pair: pair[1].shape):
        pairs = list(same)
        for start in range(0, len(pairs), BATCH):
            part = pairs[start : start + BATCH]
            yield torch.tensor([i for i, _ in part]), torch.stack([image for _, image in part])


def _encode(model: BaseModel, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens ``(B, T, D)``, prepared images, and q and all embeddings of a prediction ``(B, E, D)``, on the CPU."""
    backbone = model.backbone
    tokens, outputs = backbone.tokens(images), []
    outputs.append(backbone.query(images, tokens))
    # The last layer of every encoding gives the embedding, whatever the model does with it.
    handle = backbone.vit.fc_norm.register_forward_hook(lambda layer, inputs, output: outputs.append(output))
    try:
        model.predict_batch(images)
    finally:
        handle.remove()
    return tokens.cpu(), backbone.prepare(images).cpu(), torch.stack(outputs, 1).cpu()


def _like_their_mean(embeddings: Tensor, labels: Tensor) -> Tensor:
    """Which embeddings ``(E, N, D)`` equal the mean of their class of several samples, up to rounding, ``(E, N)``."""
    _, row, counts = labels.unique(return_inverse=True, return_counts=True)
    sums = embeddings.new_zeros(len(embeddings), len(counts), embeddings.shape[2], dtype=torch.float64)
    means = sums.index_add(1, row, embeddings.double())[:, row]
    distance = (F.normalize(means, dim=2) - F.normalize(embeddings.double(), dim=2)).norm(dim=2)
    return (distance < 2 * VECTOR_TOLERANCE) & (counts[row] > 1)
