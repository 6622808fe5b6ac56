"""Different images are counted, copies are not, and a mini-batch that fails leaves no trace."""

import math

import pytest
import torch

from avalanche_f2ocl import F2OCLModel, FrozenModel
from avalanche_f2ocl.state.distinct import DistinctCount, image_codes
from avalanche_f2ocl.state.undo import Undo


def codes(count: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, 2**40, (count,), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("number", [1, 30, 1000, 20_000, 120_000])
def test_copies_do_not_count(number):
    count = DistinctCount()
    for part in (*codes(number).split(977), codes(number), codes(number)[: number // 2]):
        count.add(part)
    assert count.total() == 2 * number + number // 2
    assert count.estimate().item() == pytest.approx(len(codes(number).unique()), rel=0.05)


def test_the_estimate_is_the_published_one():
    count = DistinctCount()
    count.add(codes(5000))
    empty = sum(not bucket for bucket in count.buckets.tolist())
    expected = -16384 * torch.tensor(empty / 16384).double().log()
    torch.testing.assert_close(count.estimate(), expected, rtol=1e-6, atol=0)


def test_an_estimate_is_never_more_than_what_was_counted():
    count = DistinctCount()
    assert count.estimate() == 0
    for seed in range(40):
        count.add(codes(5, seed))
        assert count.estimate() <= count.total() == 5 * (seed + 1)


def test_a_full_table_still_gives_a_number():
    count = DistinctCount()
    count.add(codes(1_000_000))
    assert (count.buckets > 0).all()
    assert count.estimate().item() == pytest.approx(16384 * math.log(16384))


def test_similar_codes_fall_into_different_buckets():
    count = DistinctCount()
    count.add(2 ** torch.arange(40))
    count.add(torch.arange(1000) * 3)
    assert count.estimate().item() == pytest.approx(1038, rel=0.05)


def test_a_block_that_fails_takes_its_codes_back():
    count = DistinctCount()
    count.add(codes(100))
    before = count.buckets.clone()
    with pytest.raises(OSError), Undo([count]):
        count.add(codes(50, 1))
        count.add(codes(100))
        raise OSError
    assert torch.equal(count.buckets, before)
    with Undo([count]):
        count.add(codes(50, 1))
    with pytest.raises(OSError), Undo([count]):
        raise OSError
    assert count.total() == 150


def test_counts_stay_whole_numbers_in_any_precision():
    count = DistinctCount()
    count.add(codes(10))
    assert count.half().buckets.dtype == torch.int32


def images(count: int, channels: int = 3, side: int = 32) -> torch.Tensor:
    draw = torch.Generator().manual_seed(count)
    coarse = torch.rand(count, channels, 6, 6, generator=draw)
    return torch.nn.functional.interpolate(coarse, (side, side), mode="bilinear").mul(255).to(torch.uint8)


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("side", [8, 32, 50])
def test_images_have_codes_of_their_own(channels, side):
    found = image_codes(images(500, channels, side))
    assert found.dtype == torch.int64 and found.min() >= 0 and found.max() < 2**48
    assert len(found.unique()) > 495


def test_copies_share_a_code_in_any_mini_batch_order_and_range():
    x = images(200)
    alone = torch.cat([image_codes(image) for image in x.split(1)])
    assert torch.equal(alone, image_codes(x))
    assert torch.equal(image_codes(x.flip(0)).flip(0), alone)
    assert (image_codes(x.float() / 255) == alone).float().mean() > 0.98
    assert (image_codes((x.float() / 255 - 0.5) / 0.3) == alone).float().mean() > 0.98


def test_most_noisy_copies_share_a_code_and_mirrored_images_do_not():
    x = images(500).float()
    noisy = (x + 3 * torch.randn(x.shape, generator=torch.Generator().manual_seed(0))).clamp(0, 255).round()
    assert (image_codes(noisy) == image_codes(x)).float().mean() > 0.7
    assert (image_codes(x.flip(-1)) == image_codes(x)).float().mean() < 0.02


def test_uniform_images_have_a_code():
    assert len(image_codes(torch.full((3, 3, 32, 32), 7, dtype=torch.uint8)).unique()) == 1


def test_models_count_with_heads_that_ask_for_it():
    x, labels = images(30), torch.arange(30) % 3
    best = F2OCLModel.best("micro_vit", prompt_length=2)
    frozen = FrozenModel("micro_vit", head="lda")
    for model in (best, frozen):
        for _ in range(3):
            model.learn(x, labels)
    for head in (*best.head.heads, frozen.head):
        assert head.total == 90
        assert head.distinct.total() == 90
        assert head.distinct.estimate().item() == pytest.approx(30, abs=0.5)


def test_a_failed_mini_batch_is_not_counted(monkeypatch):
    model = FrozenModel("micro_vit", head="lda")
    model.learn(images(10), torch.arange(10) % 2)
    before = model.head.distinct.buckets.clone()
    monkeypatch.setattr(type(model), "updates", property(lambda self: (self.update_prototypes, fail)))
    with pytest.raises(OSError):
        model.learn(images(20), torch.arange(20) % 4)
    assert torch.equal(model.head.distinct.buckets, before)


def fail(batch):
    raise OSError
