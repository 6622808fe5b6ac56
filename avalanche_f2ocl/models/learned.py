"""What a model and its optimiser have learned, by name, as it goes into a file."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from avalanche_f2ocl.models.base import BaseModel
from avalanche_f2ocl.state.row_adam import StepOptimizer
from avalanche_f2ocl.state.rows import ClassRows


@dataclass
class Learned:
    """Everything learned that is saved to a file and restored from it.

    Attributes:
        model: the model with its frozen backbone.
        kind: name of the strategy class that learned the model, or could have learned it.
        optimizer: optimiser of the model; None if nothing is trained.
        own: further tensors of the strategy, with a row per class.
    """

    model: BaseModel
    kind: str
    optimizer: StepOptimizer | None = None
    own: dict[str, Tensor] = field(default_factory=dict)

    def trained(self) -> list[tuple[str, torch.nn.Parameter, dict[str, Tensor]]]:
        """Name, value and optimiser state of each trained parameter."""
        state = {} if self.optimizer is None else self.optimizer.state
        return [(name, p, state.get(p, {})) for name, p in self.model.named_parameters() if p.requires_grad]

    def tensors(self) -> dict[str, Tensor]:
        """Everything learned, by name: the model without its backbone, the optimiser's state, the rest."""
        state = self.model.state_dict()
        tensors = {f"model.{name}": t for name, t in state.items() if not name.startswith("backbone.")}
        for name, _, moments in self.trained():
            # Only rows in use, since spare rows hold nothing.
            tensors |= {f"optimizer.{name}.{key}": t[: len(state[name])] for key, t in moments.items()}
        return tensors | {f"own.{name}": t for name, t in self.own.items()}

    def class_row_names(self) -> set[str]:
        """Names of the tensors with a row per class."""
        modules = self.model.named_modules()
        rows = {f"{path}.{name}" for path, m in modules if isinstance(m, ClassRows) for name in m.row_names}
        moments = {f"optimizer.{name}.{key}" for name, _, state in self.trained() if name in rows for key in state}
        return {f"model.{name}" for name in rows} | moments | {f"own.{name}" for name in self.own}
