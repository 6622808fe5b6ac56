import pytest

from benchmarks.beyond.features import RECOMMENDED, WHOLE
from benchmarks.beyond.image_sizes import CHOICES, VARIANTS, load_sizes, trials

DIGITS = ["--dataset", "digits", "--backbone", "micro_vit", "--train-per-class", "6", "--held-out", "3"]


@pytest.fixture(scope="module")
def loaded():
    return load_sizes(DIGITS, "float32")


def test_sizes_are_shares_of_the_backbone_s_own(loaded):
    assert [backbone.image_size for backbone, *_ in loaded] == [16, 24, 32]


def test_all_sizes_see_the_same_images(loaded):
    for _, images, labels, share in loaded:
        assert images is loaded[0][1] and labels is loaded[0][2]
        assert len(images) == 90 and share == 1 / 3


def test_each_choice_has_a_figure_at_each_size(loaded):
    figures = trials(loaded, seed=1)
    assert list(figures) == VARIANTS
    assert all(20 < figure <= 100 for figure in figures.values())  # ten classes
    assert CHOICES["as recommended"] == (WHOLE, RECOMMENDED)
