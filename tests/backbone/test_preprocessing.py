import numpy as np
import pytest
import torch
from PIL import Image
from timm.data import create_transform

from avalanche_f2ocl.backbone.preprocessing import ImagePreparation, prepared_as
from avalanche_f2ocl.backbone.weights import load_vit
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


@pytest.mark.parametrize("size", [(480, 640), (640, 480), (100, 300), (50, 40)])
@pytest.mark.parametrize("crop_pct", [0.875, 0.9, 1.0])
def test_photographs_are_cropped_as_timm_does(size, crop_pct, draw):
    coarse = torch.rand(1, 3, 6, 6, generator=draw)
    image = (torch.nn.functional.interpolate(coarse, size, mode="bilinear") * 255).round().byte()
    ours = ImagePreparation(ImageFit(64, crop_pct=crop_pct), (0.0,) * 3, (1.0,) * 3)(image)
    timms = create_transform((3, 64, 64), crop_pct=crop_pct, interpolation="bicubic", mean=(0.0,) * 3, std=(1.0,) * 3)
    expected = timms(Image.fromarray(image[0].permute(1, 2, 0).numpy()))
    # Pillow rounds to whole grey levels after each direction.
    torch.testing.assert_close(ours[0] * 255, expected * 255, atol=1.1, rtol=0)


def test_squares_stay_whole(draw):
    image = torch.randint(0, 256, (1, 3, 20, 20), dtype=torch.uint8, generator=draw)
    auto, squash, crop = (ImagePreparation(ImageFit(16, fit), HALF, HALF)(image) for fit in ("auto", "squash", "crop"))
    assert torch.equal(auto, squash) and not torch.equal(auto, crop)
    fitted = image[..., :16, :16]
    assert torch.equal(ImagePreparation(ImageFit(16, "crop"), (0.0,) * 3, (1.0,) * 3)(fitted), fitted / 255)


@pytest.mark.parametrize("channels", [1, 3])
def test_padding(channels):
    image = torch.full((2, channels, 20, 40), 255, dtype=torch.uint8)
    out = ImagePreparation(ImageFit(8, "pad", fill=(0, 51, 102)), (0.0,) * 3, (1.0,) * 3)(image)
    torch.testing.assert_close(out[:, :, 2:6], torch.ones(2, 3, 4, 8))
    for rows in (out[:, :, :2], out[:, :, 6:]):
        torch.testing.assert_close(rows, torch.tensor([0, 0.2, 0.4]).view(1, 3, 1, 1).expand_as(rows))


def test_a_vits_own_configuration():
    vit = load_vit("micro_vit")
    assert prepared_as(vit).fit == ImageFit(32, "auto", 1.0)
    own = dict(mean=(0.2, 0.4, 0.6), std=(0.1,) * 3, crop_pct=0.95, interpolation="bilinear")
    vit.pretrained_cfg = vit.pretrained_cfg | own
    prepare = prepared_as(vit)
    assert prepare.fit == ImageFit(32, "auto", 0.95, "bilinear", (51, 102, 153))
    torch.testing.assert_close(prepare.mean.flatten(), torch.tensor(own["mean"]))
    assert prepared_as(vit, normalise="unit").mean.unique().tolist() == [0]
    vit.pretrained_cfg = vit.pretrained_cfg | {"crop_mode": "squash"}
    assert prepared_as(vit).fit.fit == "squash" and prepared_as(vit, "pad").fit.fit == "pad"
