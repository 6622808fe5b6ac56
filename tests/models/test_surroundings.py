"""Models learn the same whatever mode, default dtype or cast surrounds them."""

import pytest
import torch

from avalanche_f2ocl import F2OCLModel, FrozenModel
from tests.helpers import assert_same_state, learned

MODELS = {
    "f2ocl": lambda vit: F2OCLModel(vit, prompt_length=2),
    "best": lambda vit: F2OCLModel.best(vit, prompt_length=2),
    "gradient keys": lambda vit: F2OCLModel(vit, prompt_length=2, key_update="gradient", prompt_init="normal"),
    "projected ridge": lambda vit: FrozenModel(vit, head="ridge", projection=20),
    "lda": lambda vit: FrozenModel(vit, head="lda"),
}


@pytest.fixture(params=MODELS)
def make(request):
    return MODELS[request.param]


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_modes_without_gradient(mode, make, small_vit, images, labels):
    plain, other = make(small_vit), make(small_vit)
    for part in (slice(0, 6), slice(6, 12)):
        plain.learn(images[part], labels[part])
        with mode():
            other.learn(images[part].clone(), labels[part].clone())
    assert_same_state(learned(other), learned(plain))
    plain.learn(images[:5], labels[:5])
    other.learn(images[:5], labels[:5])
    assert_same_state(learned(other), learned(plain))


@pytest.mark.parametrize("cast", ["float", "half", "double", "bfloat16"])
def test_casts_change_nothing(cast, make, small_vit, images, labels):
    plain, other = make(small_vit), make(small_vit)
    for part in (slice(0, 6), slice(6, 12)):
        plain.learn(images[part], labels[part])
        other.learn(images[part], labels[part])
        getattr(other, cast)()
        getattr(other.head, cast)()
    assert_same_state(learned(other), learned(plain))
    assert torch.equal(other(images), plain(images))


def test_another_default_dtype(make, images, labels):
    plain = make("micro_vit")
    plain.learn(images, labels)
    torch.set_default_dtype(torch.float64)
    try:
        other = make("micro_vit")
        assert other.backbone.checksum == plain.backbone.checksum
        other.learn(images, labels)
        logits = other(images)
    finally:
        torch.set_default_dtype(torch.float32)
    assert {t.dtype for t in learned(other).values()} == {t.dtype for t in learned(plain).values()}
    torch.testing.assert_close(logits, plain(images), rtol=1e-3, atol=1e-4)
