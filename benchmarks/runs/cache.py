"""Unprompted embeddings of the frozen backbone, kept between runs on the same images.

Only the runner uses this cache: it saves time and changes results by no more than rounding. Strategies keep nothing per
sample. Times of runs with a cache do not include the cached forward passes.
"""

import os
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from avalanche_f2ocl.backbone.vit import PromptableViT


class QueryCache:
    """Takes the place of ``backbone.query``, and of ``backbone.query_layers`` for a single block.

    Args:
        backbone: the backbone whose methods are replaced.
        path: file of earlier runs' embeddings, which is read if it exists; for one backbone, readout and image size.
    """

    def __init__(self, backbone: PromptableViT, path: Path) -> None:
        self._query, self._query_layers, self._path = backbone.query, backbone.query_layers, path
        self._known: dict[str, dict[bytes, Tensor]] = {"q": {}, "layers": {}}
        if path.exists():
            with np.load(path) as saved:
                for name, table in self._known.items():
                    keys = (key.tobytes() for key in saved[f"{name}-keys"])
                    table.update(zip(keys, torch.from_numpy(saved[name]), strict=True))
        self._loaded = self._size()
        backbone.query, backbone.query_layers = self.query, self.query_layers

    def query(self, images: Tensor, tokens: Tensor, replay: bool = False) -> Tensor:
        return self._of("q", images, lambda new: self._query(images[new], tokens[new])).to(tokens.device)

    def query_layers(
        self, images: Tensor, tokens: Tensor, blocks: Sequence[int], grid: int = 1, replay: bool = False
    ) -> tuple[Tensor, Tensor]:
        if len(blocks) > 1 or grid > 1:
            return self._query_layers(images, tokens, blocks, grid, replay)

        def compute(new: list[int]) -> Tensor:
            q, layers = self._query_layers(images[new], tokens[new], blocks)
            return torch.cat([q, layers.flatten(1)], dim=1)

        dim = tokens.shape[2]
        known = self._of("layers", images, compute, bytes(blocks)).to(tokens.device)
        return known[:, :dim], known[:, dim:].unflatten(1, (1, -1, dim))

    def _of(self, name: str, images: Tensor, compute: Callable[[list[int]], Tensor], of: bytes = b"") -> Tensor:
        table = self._known[name]
        keys = [blake2b(image.cpu().numpy().tobytes() + of, digest_size=16).digest() for image in images]
        new = [i for i, key in enumerate(keys) if key not in table]
        if new:
            for i, values in zip(new, compute(new).cpu(), strict=True):
                table[keys[i]] = values
        return torch.stack([table[key] for key in keys])

    def _size(self) -> int:
        return sum(map(len, self._known.values()))

    def save(self) -> None:
        """Writes the embeddings, if there are new ones."""
        if self._size() == self._loaded:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        arrays = {}
        for name, table in self._known.items():
            arrays[f"{name}-keys"] = np.frombuffer(b"".join(table), dtype="u1").reshape(-1, 16)
            arrays[name] = torch.stack(list(table.values())).numpy() if table else np.zeros((0, 0), dtype="f4")
        unfinished = self._path.with_suffix(f".{os.getpid()}.npz")
        np.savez(unfinished, **arrays)
        os.replace(unfinished, self._path)
