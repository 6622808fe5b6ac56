import pytest

from avalanche_f2ocl import ViTNCM
from avalanche_f2ocl.state.undo import Undo
from avalanche_f2ocl.testing import on_small_vit
from avalanche_f2ocl.testing.refusals import a_minibatch_that_fails_leaves_no_trace


def test_a_strategy_that_does_not_take_back_is_found(monkeypatch):
    monkeypatch.setattr(Undo, "save_attributes", lambda *_: None)
    with pytest.raises(AssertionError, match="fails by '.*': changed what was learned"):
        a_minibatch_that_fails_leaves_no_trace(on_small_vit(ViTNCM))
