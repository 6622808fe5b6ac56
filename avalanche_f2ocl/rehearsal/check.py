"""Whether a strategy keeps the samples that it has learned from."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from avalanche_f2ocl.models.base import BaseModel
from avalanche_f2ocl.rehearsal.held import Held, held
from avalanche_f2ocl.rehearsal.sample_forms import SampleForms

STREAMS = tuple(f"strategy.{name}" for name in ("experience", "_eval_streams", "current_eval_stream"))
"""Attributes by which Avalanche's loop itself refers to its caller's streams, which are no memory of the method."""


@dataclass(frozen=True)
class Finding:
    """A sample that is kept.

    Attributes:
        where: path to the object that keeps it, as in ``strategy.plugins[0].storage_policy._buffer[7][0]``.
        what: ``"image"`` (as it came, scaled or normalised), ``"prepared image"`` (resized for the backbone),
            ``"tokens"``, ``"embedding"``, or ``"memory of the image"`` (a tensor that shares it).
        sample: index of the sample.
    """

    where: str
    what: str
    sample: int


@dataclass(frozen=True)
class RehearsalReport:
    """The result of :func:`check_rehearsal_free`; ``str`` makes a readable text of it.

    Attributes:
        findings: samples that are kept; empty if the strategy passes.
        samples: number of samples that were looked for.
        held_bytes: bytes that the strategy holds, see :func:`held_bytes`.
    """

    findings: tuple[Finding, ...]
    samples: int
    held_bytes: int

    @property
    def passed(self) -> bool:
        """Whether no sample is kept."""
        return not self.findings

    def __str__(self) -> str:
        if self.passed:
            return f"none of {self.samples} samples is kept; {self.held_bytes} bytes are held"
        kept = len({finding.sample for finding in self.findings})
        lines = [f"{kept} of {self.samples} samples are kept; {self.held_bytes} bytes are held"]
        lines += [f"  sample {f.sample}: {f.what} at {f.where}" for f in self.findings[:10]]
        return "\n".join([*lines, f"  and {len(self.findings) - 10} more"] if len(self.findings) > 10 else lines)


@torch.no_grad()
def check_rehearsal_free(strategy: Any, samples: Sequence[tuple]) -> RehearsalReport:
    """Looks for samples in everything that a strategy holds, after ``train`` has returned.

    It searches model, plugins, metrics, optimiser and everything that they refer to, see
    :func:`avalanche_f2ocl.rehearsal.held.held`. Only :data:`STREAMS` are left out, the strategy's own
    references to the streams that its caller passed in. A sample counts as kept if a tensor, an array, a PIL
    image or a list of numbers, or a part of one that is as large as the sample, equals, up to rounding,

    - its image, in any linear scaling per channel or as a negative, with channels first or last, also resized for the
      backbone;
    - its tokens;
    - its embedding, without prompts or under its present prompts, in any scaling;

    or if a tensor shares memory with the image (for samples that lie in memory). It does not find copies of crops,
    random augmentations (which includes data sets with random transforms), encoded files, and embeddings under prompts
    that have changed since; to find these, compare :func:`held_bytes` before and after further samples.

    Images of a single colour are only looked for by shared memory, since too many values equal them. Embeddings are
    looked for only if the class has more than one sample and the sample is not like the class's mean: the prototype
    (and the mean key) of a class with one sample is that sample's embedding, by definition;
    ``strategy.save(..., min_class_count=2)`` leaves such classes out.

    Args:
        strategy: an :class:`avalanche_f2ocl.strategies.base.BaseStrategy`, or a model without Avalanche.
        samples: items of (image ``(C, H, W)``, class id, ...): a data set, or a list.

    Raises:
        TypeError, ValueError: the strategy has no such model, there are no samples, or the model does not take the
            images.

    Example:
        >>> from avalanche_f2ocl import F2OCLModel
        >>> model = F2OCLModel("micro_vit", prompt_length=2)
        >>> images = torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8)
        >>> model.learn(images, [7, -3, 7, -3])
        >>> check_rehearsal_free(model, list(zip(images, [7, -3, 7, -3]))).passed
        True
        >>> model.diary = [images[2]]
        >>> print(check_rehearsal_free(model, list(zip(images, [7, -3, 7, -3]))))  # doctest: +ELLIPSIS
        1 of 4 samples are kept; ... bytes are held
          sample 2: image at strategy.diary[0]
    """
    model = getattr(strategy, "model", strategy)
    if not isinstance(model, BaseModel):
        raise TypeError(f"strategy is {type(strategy).__name__}: its model must be a BaseModel")
    if len(samples) == 0:
        raise ValueError("samples are empty: nothing can be looked for")
    forms = SampleForms(model, samples, _several(model, samples))
    memory, size = _Memory(samples), _Size()
    findings = []
    for found in held(strategy, "strategy", skip=STREAMS):
        size.add(found)
        hits = forms.find(found.tensor)
        known = {sample for _, sample in hits}
        hits += [("memory of the image", sample) for sample in memory.find(found.tensor) if sample not in known]
        findings += [Finding(found.path, what, sample) for what, sample in hits]
    return RehearsalReport(tuple(findings), len(samples), size.bytes())


def held_bytes(strategy: Any) -> int:
    """Bytes of all tensors, arrays, images and raw bytes that a strategy (or model) holds, its backbone included.

    A rehearsal-free strategy holds as many bytes after further mini-batches of known classes as before. A view counts
    only its own elements. Python numbers, as in the histories of Avalanche's metrics, are not counted.

    Args:
        strategy: a strategy between calls of ``train``, or a model.

    Example:
        >>> from avalanche_f2ocl import F2OCLModel
        >>> model = F2OCLModel("micro_vit", prompt_length=2)
        >>> images = torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8)
        >>> model.learn(images, [0, 1, 0, 1])
        >>> before = held_bytes(model)
        >>> model.learn(images, [1, 1, 0, 0])
        >>> held_bytes(model) - before
        0
    """
    size = _Size()
    for found in held(strategy, "strategy", skip=STREAMS):
        size.add(found)
    return size.bytes()


def _several(model: BaseModel, samples: Sequence[tuple]) -> list[bool]:
    """Whether each sample's class has been learned from more than one sample."""
    counts = Counter(dict(zip(model.class_ids.tolist(), model.head.used("counts").tolist(), strict=True)))
    return [counts[int(item[1])] > 1 for item in samples]


class _Size:
    """Adds up the bytes of what is held: each view once, and no Python numbers."""

    def __init__(self) -> None:
        self.views: dict[tuple[Any, ...], int] = {}
        self.items = 0

    def add(self, found: Held) -> None:
        tensor = found.tensor
        size = min(tensor.nbytes, tensor.untyped_storage().nbytes())
        if found.is_item:
            self.items += size
        elif not found.is_list:
            self.views[tensor.device, tensor.data_ptr(), tensor.shape, tensor.stride()] = size

    def bytes(self) -> int:
        return sum(self.views.values()) + self.items


class _Memory:
    """The addresses of images that stay in memory, unlike images that are decoded on demand."""

    def __init__(self, samples: Sequence[tuple]) -> None:
        pairs = ((samples[index][0], samples[index][0], index) for index in range(len(samples)))
        lasting = [(image, index) for image, again, index in pairs if image.data_ptr() == again.data_ptr()]
        self.starts, self.stops = np.array([_span(image) for image, _ in lasting], np.uint64).reshape(-1, 2).T
        self.samples = np.array([index for _, index in lasting], int)

    def find(self, tensor: Tensor) -> list[int]:
        """Indices of the samples whose memory a tensor overlaps."""
        start, stop = _span(tensor)
        return self.samples[(self.starts < stop) & (self.stops > start)].tolist()


def _span(tensor: Tensor) -> tuple[int, int]:
    if tensor.numel() == 0:
        return 0, 0
    reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + (reach + 1) * tensor.element_size()
