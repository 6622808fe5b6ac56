import pytest

from avalanche_f2ocl.baselines import ER
from avalanche_f2ocl.testing import on_small_vit
from avalanche_f2ocl.testing.rehearsal import no_sample_is_kept


def test_a_strategy_that_keeps_samples_is_found():
    with pytest.raises(AssertionError, match="30 of 40 samples are kept"):
        no_sample_is_kept(on_small_vit(lambda **options: ER(mem_size=30, **options)))
