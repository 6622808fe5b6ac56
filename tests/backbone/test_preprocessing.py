import numpy as np
import pytest
import torch
from PIL import Image

from avalanche_f2ocl.backbone.preprocessing import ImagePreparation
from avalanche_f2ocl.image_fit import ImageFit

HALF = (0.5,) * 3


@pytest.mark.parametrize("size", [(48, 60), (20, 17)], ids=["down", "up"])
@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
def test_resizes_like_pillow(size, interpolation, draw):
    coarse = torch.rand(1, 3, 6, 6, generator=draw)
    smooth = torch.nn.functional.interpolate(coarse, size, mode="bilinear")
    image = (smooth * 255).round().byte()
    ours = ImagePreparation(ImageFit(32, "squash", interpolation=interpolation), (0.0,) * 3, (1.0,) * 3)(image)
    pillow = Image.fromarray(image[0].permute(1, 2, 0).numpy())
    expected = np.asarray(pillow.resize((32, 32), getattr(Image.Resampling, interpolation.upper())))
    # Pillow rounds to whole grey levels after each direction.
    np.testing.assert_allclose(ours[0].permute(1, 2, 0).numpy() * 255, expected, atol=1.01)


def test_normalises_bytes_and_floats_alike(images):
    prepare = ImagePreparation(ImageFit(32), (0.1, 0.2, 0.3), (0.5, 0.6, 0.7))
    expected = (images.double() / 255 - torch.tensor([0.1, 0.2, 0.3]).view(3, 1, 1)) / torch.tensor(
        [0.5, 0.6, 0.7]
    ).view(3, 1, 1)
    torch.testing.assert_close(prepare(images), expected.float())
    torch.testing.assert_close(prepare(images.float() / 255), expected.float())
    assert prepare(images.double() / 255).dtype == torch.float32


def test_grey_becomes_three_equal_channels(images):
    out = ImagePreparation(ImageFit(16), HALF, HALF)(images[:, :1])
    assert out.shape == (12, 3, 16, 16)
    assert torch.equal(out[:, 0], out[:, 1]) and torch.equal(out[:, 0], out[:, 2])


def test_bicubic_stays_in_range():
    edge = torch.zeros(1, 3, 8, 8, dtype=torch.uint8)
    edge[..., 4:] = 255
    out = ImagePreparation(ImageFit(31), (0.0,) * 3, (1.0,) * 3)(edge)
    assert out.min() == 0 and out.max() == 1


def test_normalised_images_pass_untouched(draw):
    images = torch.randn(2, 3, 32, 32, generator=draw)
    assert torch.equal(ImagePreparation(ImageFit(32), HALF, HALF, inputs="normalised")(images), images)


def test_the_callers_images_are_left_alone():
    for images in (torch.rand(2, 3, 8, 8), torch.rand(2, 3, 16, 16), torch.rand(2, 1, 16, 16)):
        before = images.clone()
        ImagePreparation(ImageFit(16), (0.5,) * 3, (0.5,) * 3)(images)
        assert torch.equal(images, before)
