"""Prompts, one for each class or one for all: their initial values, and which prompt a mini-batch or image gets."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from avalanche_f2ocl.extensions import check_made, found
from avalanche_f2ocl.rng import generator
from avalanche_f2ocl.state.late_answer import LateAnswer
from avalanche_f2ocl.state.rows import ClassRows, Undoable

Shapes = Mapping[str, tuple[int, ...]]


class Prompts(Protocol):
    """The methods and attributes that a model needs of its prompts: one for each class, or one for all classes.

    Attributes:
        prompts: parameter ``(P, L, D)``.
        moved: for each prompt, how far all its steps together have moved embeddings, as a share of their spread,
            ``(P,)``; only if ``max_drift`` is set.
        drift: for each prompt, how far its steps have moved what is computed under it, ``(P, E)``; only with
            ``compensate_drift``.
        found_by_key: whether an image's prompt is found by its nearest keys; otherwise there is only one prompt.
    """

    prompts: nn.Parameter
    moved: Tensor
    drift: Tensor
    found_by_key: ClassVar[bool]

    def add_classes(self, ids: Tensor) -> None:
        """Adds what each of the new class ids ``(N,)``, int64 on the CPU, needs."""

    def used(self, name: str) -> Tensor:
        """The used rows of a tensor, for example of ``"prompts"``."""

    def elect(self, rows: Tensor, election: str, number: int) -> Tensor:
        """Row ``(1,)`` of the prompt for a mini-batch of the classes ``rows (B,)``, both int64 on the CPU."""

    def gather(self, rows: Tensor) -> Tensor:
        """The prompts of distinct ``rows (P,)``, to be trained: ``(P, L, D)``."""

    def add(self, name: str, rows: Tensor, step: Tensor) -> None:
        """Adds ``step`` to the tensor ``name`` (``"moved"`` or ``"drift"``) in distinct ``rows (P,)``."""

    def stand_still(self, rows: Tensor, limit: float) -> bool:
        """Whether all prompts of ``rows (P,)`` have moved by ``limit``; called before each step."""


class PromptPool(ClassRows):
    """One prompt of L tokens per class.

    Args:
        length: tokens per prompt, L.
        dim: length D of a token.
        init: kind of initial values, see :func:`initial_prompt`.
        seed: seed of the initial prompts; a class's initial prompt is a function of the seed and the class id.
        kept: shapes of further tensors kept for each prompt, by name: ``()`` for ``"moved"``, ``(E,)`` for ``"drift"``.

    Attributes:
        prompts: parameter ``(capacity, L, D)``; the first ``num_rows`` rows are in use.
        moved, drift: ``(capacity,)`` and ``(capacity, E)``, if they are kept; see :class:`Prompts`.

    Example:
        >>> pool = PromptPool(length=4, dim=8)
        >>> pool.add_classes(torch.tensor([17, 3]))
        >>> pool.gather(torch.tensor([1])).shape
        torch.Size([1, 4, 8])
    """

    prompts: nn.Parameter
    moved: Tensor
    drift: Tensor
    found_by_key: ClassVar[bool] = True

    def __init__(
        self, length: int, dim: int, init: str = "uniform", seed: int = 0, kept: Shapes = MappingProxyType({})
    ) -> None:
        super().__init__()
        self.length, self.dim, self.init, self.seed = length, dim, init, seed
        self.register_rows("prompts", length, dim, trainable=True)
        for name, shape in kept.items():
            self.register_rows(name, *shape)

    @torch.no_grad()
    def add_classes(self, ids: Tensor) -> None:
        new = self.add_rows(len(ids))
        initial = torch.stack([self._initial(class_id) for class_id in ids.tolist()])
        self.prompts[new] = initial.to(self.prompts.device, non_blocking=True)

    def _initial(self, class_id: int) -> Tensor:
        return initial_prompt(self.init, (self.length, self.dim), generator(self.seed, "prompt", class_id))

    def elect(self, rows: Tensor, election: str, number: int) -> Tensor:
        """Elects a row, see :func:`elect`; the random draw depends on the seed and the mini-batch's ``number``."""
        return elect(rows, self.num_rows, election, generator(self.seed, "election", number))

    def gather(self, rows: Tensor) -> Tensor:
        """The prompts of ``rows``, to be trained; see :class:`Prompts` and :meth:`ClassRows.trainable`."""
        return self.trainable("prompts", rows)

    def add(self, name: str, rows: Tensor, step: Tensor) -> None:
        getattr(self, name)[rows] += step

    def stand_still(self, rows: Tensor, limit: float) -> bool:
        return bool((self.moved[rows] >= limit).all())


class OnePrompt(Undoable):
    """One prompt for all classes, with the interface of :class:`Prompts`.

    Args:
        length, dim, init, seed, kept: those of :class:`PromptPool`.

    Attributes:
        prompts: parameter ``(1, L, D)``.
        moved, drift: ``(1,)`` and ``(1, E)``, if they are kept; see :class:`Prompts`.

    Example:
        >>> OnePrompt(length=4, dim=8).prompts.shape
        torch.Size([1, 4, 8])
    """

    moved: Tensor
    drift: Tensor
    found_by_key: ClassVar[bool] = False
    _still = False

    def __init__(
        self, length: int, dim: int, init: str = "uniform", seed: int = 0, kept: Shapes = MappingProxyType({})
    ) -> None:
        super().__init__()
        self.prompts = nn.Parameter(initial_prompt(init, (1, length, dim), generator(seed, "shared-prompt")))
        self._has_moved = LateAnswer()
        for name, shape in kept.items():
            self.register_buffer(name, torch.zeros(1, *shape, dtype=torch.float32))

    def add_classes(self, ids: Tensor) -> None:
        """Does nothing: all classes share the prompt."""

    def used(self, name: str) -> Tensor:
        return getattr(self, name)

    def elect(self, rows: Tensor, election: str, number: int) -> Tensor:
        """Row 0, the only one."""
        return rows.new_zeros(1)

    def gather(self, rows: Tensor) -> Tensor:
        return self.prompts

    def add(self, name: str, rows: Tensor, step: Tensor) -> None:
        setattr(self, name, getattr(self, name) + step)  # a new tensor, so that undo can restore the old one

    def stand_still(self, rows: Tensor, limit: float) -> bool:
        # A prompt that has stopped stays so, and the device need not be asked at every mini-batch.
        self._still = self._still or self._has_moved((self.moved >= limit).all())
        return self._still

    def _load_from_state_dict(self, *args):
        super()._load_from_state_dict(*args)
        self._still, self._has_moved = False, LateAnswer()

    def undo_writes(self, rows: Tensor) -> Callable[[], None]:
        return partial(self._put_back, {name: tensor for name, tensor in self._buffers.items() if tensor is not None})

    def _put_back(self, buffers: dict[str, Tensor]) -> None:
        for name, tensor in buffers.items():
            setattr(self, name, tensor)


def make_prompts(
    assignment: Any, length: int, dim: int, init: str = "uniform", seed: int = 0, kept: Shapes = MappingProxyType({})
) -> Prompts:
    """Makes the prompts of a ``prompt_assignment``; the other arguments are those of :class:`PromptPool`.

    Raises:
        TypeError: a user's class made something that is no :class:`Prompts`.

    Example:
        >>> type(make_prompts("shared", length=4, dim=8)).__name__
        'OnePrompt'
    """
    own: dict[str, Any] = {"batch": PromptPool, "label": PromptPool, "shared": OnePrompt}
    pool: Any = (own.get(assignment) or found("prompt_assignment", assignment))(length, dim, init, seed, kept)
    attributes = ("prompts", "found_by_key", "add_classes", "used", "elect", "gather", "add", "stand_still", *kept)
    check_made("prompt_assignment", assignment, pool, Undoable, attributes)
    return pool


def initial_prompt(init: str, shape: tuple[int, ...], draw: torch.Generator) -> Tensor:
    """A prompt's initial values, float32 on the CPU.

    Args:
        init: ``"uniform"`` in [-1, 1), ``"normal"`` with standard deviation 0.02, or ``"zeros"``.
        shape: shape of the tensor.
        draw: generator of the random numbers.

    Example:
        >>> initial_prompt("zeros", (1, 2), torch.Generator())
        tensor([[0., 0.]])
    """
    if init == "uniform":
        return torch.rand(shape, generator=draw, dtype=torch.float32) * 2 - 1
    if init == "normal":
        return torch.randn(shape, generator=draw, dtype=torch.float32) * 0.02
    return torch.zeros(shape, dtype=torch.float32)


def elect(rows: Tensor, num_rows: int, election: str, draw: torch.Generator) -> Tensor:
    """Elects the class whose prompt a mini-batch is encoded under.

    Args:
        rows: rows of the samples' classes, ``(B,)`` int64 on the CPU.
        num_rows: number of classes so far.
        election: ``"sample"``, the class of a random sample; ``"majority"``, the most frequent class,
            or the oldest such class in a tie; ``"seen"``, any class so far; or the name of a user's function, which is
            called with the other arguments.
        draw: random generator for this mini-batch.

    Returns:
        ``(1,)`` int64 on the CPU.

    Raises:
        ValueError: a user's function elected something other than one row in use.

    Example:
        >>> elect(torch.tensor([2, 0, 2]), 3, "majority", torch.Generator())
        tensor([2])
    """
    if election == "sample":
        return rows[torch.randint(len(rows), (1,), generator=draw)]
    if election == "majority":
        return torch.bincount(rows).argmax(0, keepdim=True)
    if election == "seen":
        return torch.randint(num_rows, (1,), generator=draw)
    row = found("prompt_election", election)(rows, num_rows, draw)
    if not (isinstance(row, Tensor) and row.shape == (1,) and row.dtype == torch.int64 and 0 <= row < num_rows):
        raise ValueError(f"prompt_election={election!r} elected {row!r}: must be one row, (1,) int64 below {num_rows}")
    return row
