import pytest
import torch
from torch.nn import functional as F

from avalanche_f2ocl.backbone.preprocessing import ImagePreparation
from avalanche_f2ocl.baselines.augmentation import augmented
from avalanche_f2ocl.image_fit import ImageFit

PREPARE = ImagePreparation(ImageFit(32), (0.5,) * 3, (0.25,) * 3)


def test_each_image_is_one_of_its_own_shifts_mirrored_or_not(images):
    changed = augmented(images, PREPARE, "crop", seed=0, number=0)
    assert changed.dtype == torch.uint8
    found = []
    for image, result in zip(images, changed, strict=True):
        padded = F.pad(image, (4, 4, 4, 4))
        cut = {(top, left): padded[:, top : top + 32, left : left + 32] for top in range(9) for left in range(9)}
        found += [(place, False) for place, part in cut.items() if torch.equal(result, part)]
        found += [(place, True) for place, part in cut.items() if torch.equal(result, part.flip(2))]
    assert len(found) == len(images) and len(set(found)) > 6


@pytest.mark.parametrize("augment", ["crop", "autoaugment"])
def test_draws_depend_on_seed_and_number_alone(images, augment):
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    first = augmented(images, PREPARE, augment, seed=0, number=3)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(2)
    assert torch.equal(augmented(images, PREPARE, augment, seed=0, number=3), first)
    assert not torch.equal(augmented(images, PREPARE, augment, seed=0, number=4), first)
    assert not torch.equal(augmented(images, PREPARE, augment, seed=1, number=3), first)


def test_a_policy_changes_more_than_places(images):
    crop, policy = (augmented(images, PREPARE, augment, 0, 0) for augment in ("crop", "autoaugment"))
    pairs = zip(crop.flatten(1).sort().values, policy.flatten(1).sort().values, strict=True)
    assert sum(not torch.equal(*pair) for pair in pairs) > len(images) / 2


def test_sizes_greys_floats_and_normalised_images(images):
    small = augmented(images[:2, :1, :8, :8].float() / 255, PREPARE, "crop", 0, 0)
    assert small.shape == (2, 3, 32, 32) and small.dtype == torch.uint8
    normalised = ImagePreparation(ImageFit(32), (0.5,) * 3, (0.25,) * 3, inputs="normalised")
    expected = PREPARE(augmented(images, PREPARE, "autoaugment", 0, 0))
    torch.testing.assert_close(augmented(PREPARE(images), normalised, "autoaugment", 0, 0), expected)
