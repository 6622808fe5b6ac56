"""Whether a strategy keeps what it has learned from."""

from avalanche_f2ocl.rehearsal.check import check_rehearsal_free, held_bytes

__all__ = ["check_rehearsal_free", "held_bytes"]
