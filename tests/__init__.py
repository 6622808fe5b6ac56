import pytest

pytest.register_assert_rewrite("avalanche_f2ocl.testing")  # so that its failures show values
