"""A table from class ids, which are any integers in any order, to rows."""

import torch
from torch import Tensor

from avalanche_f2ocl.state.rows import ClassRows


class ClassTable(ClassRows):
    """Class ids in order of appearance.

    Attributes:
        ids: ``(capacity,)`` int64; the first ``num_rows`` are in use.

    Example:
        >>> table = ClassTable()
        >>> table.add(torch.tensor([7, -3]))
        >>> table.rows(torch.tensor([-3, 7, 5])).tolist()
        [1, 0, -1]
    """

    ids: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_rows("ids", dtype=torch.int64)
        self._row_of: dict[int, int] = {}

    def __len__(self) -> int:
        return self.num_rows

    @property
    def max_id(self) -> int:
        """The highest class id, -1 when there is none."""
        return max(self._row_of, default=-1)

    def rows(self, ids: Tensor) -> Tensor:
        """Rows of class ids.

        Args:
            ids: ``(N,)`` int64 on the CPU.

        Returns:
            ``(N,)`` int64 on the CPU; -1 for unknown classes.
        """
        unique, inverse = torch.unique(ids, return_inverse=True)
        rows = torch.tensor([self._row_of.get(i, -1) for i in unique.tolist()], dtype=torch.int64)
        return rows[inverse]

    def unknown(self, ids: Tensor) -> Tensor:
        """The distinct ids that have no row, ascending; ``ids`` and the result are int64 on the CPU."""
        new = [i for i in torch.unique(ids).tolist() if i not in self._row_of]
        return torch.tensor(new, dtype=torch.int64)

    def add(self, ids: Tensor) -> None:
        """Appends a row per id; ``ids`` ``(N,)`` int64 on the CPU, distinct and unknown."""
        for row, class_id in enumerate(ids.tolist(), start=self.num_rows):
            self._row_of[class_id] = row
        new = self.add_rows(len(ids))
        self.ids[new] = ids.to(self.ids.device, non_blocking=True)

    def _shrink(self, num_rows: int, capacities: dict[str, int]) -> None:
        super()._shrink(num_rows, capacities)
        self._row_of = {class_id: row for class_id, row in self._row_of.items() if row < num_rows}

    def remove_row(self, row: int) -> None:
        super().remove_row(row)
        self._number_rows()

    def _load_from_state_dict(self, *args):
        super()._load_from_state_dict(*args)
        self._number_rows()

    def _number_rows(self) -> None:
        self._row_of = {class_id: row for row, class_id in enumerate(self.used("ids").tolist())}
