"""Does a strategy keep samples? A check anyone can run."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from PIL.Image import Image
from torch import Tensor
from torch.nn import functional as F
from torch.utils.data import Dataset
from torchvision.transforms.functional import pil_to_tensor

from avalanche_f2ocl.base_strategy import OnlineStrategy

_CHUNK = 128
_NEAR = 1e-4
"""Relative distance up to which two vectors are the same."""
_OPAQUE = (str, bytes, int, float, complex, bool, type(None), type, ModuleType, torch.dtype, torch.device)


@dataclass(frozen=True)
class Finding:
    """Something that is a sample, or one sample's embedding.

    Attributes:
        where: path from the strategy.
        what: ``"image"``, ``"prepared image"``, ``"tokens"`` or ``"embedding"``.
        sample: index into the samples that were given.
    """

    where: str
    what: str
    sample: int


@dataclass(frozen=True)
class RehearsalReport:
    """What :func:`check_rehearsal_free` found.

    Attributes:
        findings: one per place and kind, the first sample found there.
        held_bytes: see :func:`held_bytes`.
    """

    findings: tuple[Finding, ...]
    held_bytes: int

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __str__(self) -> str:
        lines = [f"{f.where} holds the {f.what} of sample {f.sample}" for f in self.findings]
        return "\n".join(lines) or "no sample is kept"


def check_rehearsal_free(strategy: OnlineStrategy, samples: Dataset | Sequence) -> RehearsalReport:
    """Looks for samples in everything a strategy holds; call it after ``train`` has returned.

    Walks the attributes of strategy, model, optimiser, plugins and metrics: tensors, arrays, pictures, containers,
    objects, closures, data sets (by their items). Reports what equals or shares memory with an image, equals an
    image as the backbone takes it, an image's tokens, or the unprompted embedding q of a sample whose class
    occurs more than once among ``samples``; whole, or as a part of a larger tensor; q also at length one. Left out
    are the stream that the strategy was given last (``strategy.experience``) and the frozen backbone's weights.

    It finds copies, not transforms: a sample that was encrypted, or an embedding under other prompts, passes. Of a
    class seen once, prototype and key are that sample's embedding, which is not reported;
    ``strategy.save(..., min_class_count=2)`` leaves such classes out.

    Args:
        strategy: has been trained on ``samples``.
        samples: items (image ``(C, H, W)``, label, ...), all of one size; an Avalanche experience's ``dataset``
            does. A few hundred are enough, if they are spread over the stream.

    Example:
        >>> from avalanche_f2ocl import F2OCLStrategy, class_incremental_stream
        >>> stream = class_incremental_stream("digits", groups=5, train_per_class=10, test_per_class=1)
        >>> strategy = F2OCLStrategy(backbone="micro_vit", evaluator=None)
        >>> _ = strategy.train(stream.train_stream[0], eval_streams=[])
        >>> print(check_rehearsal_free(strategy, stream.train_stream[0].dataset))
        no sample is kept
    """
    items = [samples[i] for i in range(len(samples))]
    images = torch.stack([_as_tensor(item[0]) for item in items])
    traces = _traces(strategy, images, torch.tensor([int(item[1]) for item in items]))
    memory = {item[0].untyped_storage().data_ptr(): i for i, item in enumerate(items) if isinstance(item[0], Tensor)}
    findings: list[Finding] = []
    size = 0
    for where, tensor in held_tensors(strategy):
        size += tensor.numel() * tensor.element_size()
        found = {trace.what: sample for trace in traces if (sample := trace.find(tensor)) is not None}
        if not tensor.is_sparse and tensor.numel() and tensor.untyped_storage().data_ptr() in memory:
            found.setdefault("image", memory[tensor.untyped_storage().data_ptr()])
        findings += [Finding(where, what, sample) for what, sample in found.items()]
    return RehearsalReport(tuple(findings), size)


def held_bytes(strategy: OnlineStrategy) -> int:
    """Bytes of all tensors, arrays and pictures a strategy holds, the backbone's weights left out."""
    return sum(tensor.numel() * tensor.element_size() for _, tensor in held_tensors(strategy))


def held_tensors(strategy: OnlineStrategy) -> Iterator[tuple[str, Tensor]]:
    """Every tensor a strategy holds, with its path; each object once, cycles or not."""
    seen: set[int] = {id(strategy.model.backbone.vit), id(getattr(strategy, "experience", None))}
    waiting: list[tuple[str, Any]] = [("strategy", strategy)]
    keep = []  # ids stay unique while their objects live
    while waiting:
        where, thing = waiting.pop()
        if isinstance(thing, _OPAQUE) or id(thing) in seen:
            continue
        seen.add(id(thing))
        keep.append(thing)
        if isinstance(thing, (Tensor, np.ndarray, Image)):
            tensor = _as_tensor(thing)
            if tensor is not None:
                yield where, tensor.detach()
            if isinstance(thing, Tensor) and thing.grad is not None:
                waiting.append((f"{where}.grad", thing.grad))
        else:
            waiting.extend(_parts(where, thing))


def _parts(where: str, thing: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, dict):
        for key, value in list(thing.items()):
            yield f"{where} key", key
            yield f"{where}[{key if isinstance(key, (str, int)) else '...'!r}]", value
        return
    if isinstance(thing, MethodType):
        yield f"{where}.__self__", thing.__self__
    if isinstance(thing, FunctionType):
        for cell in thing.__closure__ or ():
            yield f"{where} closure", cell.cell_contents
        yield f"{where} defaults", thing.__defaults__
        return
    if isinstance(thing, Dataset):
        for i in range(len(thing)):
            yield f"{where}[{i}]", thing[i]
    elif isinstance(thing, Iterable) and hasattr(thing, "__len__") and not hasattr(thing, "__next__"):
        for i, value in enumerate(thing):
            yield f"{where}[{i}]", value
    for name, value in getattr(thing, "__dict__", {}).items():
        yield f"{where}.{name}", value
    for cls in type(thing).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(thing, name):
                yield f"{where}.{name}", getattr(thing, name)


@dataclass
class _Trace:
    """One form of the samples, ``(N, n)`` float64, to be looked for in held tensors."""

    what: str
    values: Tensor
    samples: Tensor

    def find(self, tensor: Tensor) -> int | None:
        """The first sample that is ``tensor`` or, its leading dimensions aside, a part of it; None if there is none."""
        size = self.values.shape[1]
        if tensor.is_sparse or size not in (prod(tensor.shape[i:]) for i in range(tensor.dim())):
            return None
        for parts in tensor.reshape(-1, size).double().cpu().split(_CHUNK):
            near = torch.cdist(parts, self.values) < _NEAR * self.values.norm(dim=1)
            if near.any():
                return int(self.samples[near.any(0).nonzero()[0, 0]])
        return None


def _traces(strategy: OnlineStrategy, images: Tensor, labels: Tensor) -> list[_Trace]:
    backbone = strategy.model.backbone
    with torch.no_grad():
        tokens = backbone.tokens(images.to(strategy.device))
        q = backbone.encode_tokens(tokens)
    ids, counts = labels.unique(return_counts=True)
    several = torch.isin(labels, ids[counts > 1])
    # A picture of one value is no more than that value.
    telling = images.flatten(1).float().std(1) > 0
    forms = [
        ("image", images, telling),
        ("prepared image", backbone.prepare(images.to(strategy.device)), telling),
        ("tokens", tokens, telling),
        ("embedding", q, several),
        ("embedding", F.normalize(q, dim=1), several),
    ]
    return [_Trace(what, x.cpu()[kept].flatten(1).double(), kept.nonzero().squeeze(1)) for what, x, kept in forms]


def _as_tensor(thing: Any) -> Tensor | None:
    if isinstance(thing, Tensor):
        return thing
    if isinstance(thing, Image):
        return pil_to_tensor(thing)
    return torch.from_numpy(thing) if thing.dtype.kind in "biuf" else None
