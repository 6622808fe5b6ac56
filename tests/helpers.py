"""What several test files need."""

from avalanche_f2ocl.testing.running import as_tensors, assert_same_state, learned, train_online

__all__ = ["as_tensors", "assert_same_state", "learned", "train_online"]
