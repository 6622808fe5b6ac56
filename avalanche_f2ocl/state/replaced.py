"""Class rows and other tensors that are replaced as a whole and never changed in place."""

from collections.abc import Callable

import torch
from torch import Tensor

from avalanche_f2ocl.state.rows import ClassRows


class ReplacedRows(ClassRows):
    """Rows whose tensors are replaced as a whole when they change, so that undo can restore the old tensors.

    When the last class is gone, everything is zero.

    Example:
        >>> rows = ReplacedRows()
        >>> rows.register_rows("counts", dtype=torch.int64)
        >>> put_back = rows.undo_growth()
        >>> _ = rows.add_rows(3)
        >>> put_back()
        >>> rows.num_rows, len(rows.counts)
        (0, 0)
    """

    def remove_row(self, row: int) -> None:
        super().remove_row(row)
        if self.num_rows == 0:
            for name in self._buffers.keys() - self._non_persistent_buffers_set:
                setattr(self, name, torch.zeros_like(getattr(self, name)))

    def undo_growth(self) -> Callable[[], None]:
        before, rows = dict(self._buffers), self.num_rows

        def put_back() -> None:
            self._buffers.update(before)
            self.num_rows = rows

        return put_back

    def undo_writes(self, rows: Tensor) -> Callable[[], None]:
        return lambda: None
