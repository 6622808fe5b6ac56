import pytest


@pytest.fixture(scope="session")
def vit(small_vit):
    return small_vit
