import gc
import weakref

import pytest
import torch
from avalanche.benchmarks import split_online_stream
from torch.utils.data import TensorDataset

from avalanche_f2ocl import class_incremental_stream, online_stream
from tests.helpers import as_tensors


def classes(stream):
    return [sorted(e.classes_in_this_experience) for e in stream]


@pytest.mark.parametrize("groups, sizes", [(1, [10]), (3, [4, 3, 3]), (10, [1] * 10)])
def test_every_class_is_in_one_group(groups, sizes):
    stream = class_incremental_stream("digits", groups=groups, train_per_class=3, test_per_class=2)
    assert [len(c) for c in classes(stream.train_stream)] == sizes
    assert sorted(sum(classes(stream.train_stream), [])) == list(range(10))
    assert classes(stream.train_stream) == classes(stream.test_stream)
    for experience, size in zip(stream.train_stream, sizes, strict=True):
        labels = as_tensors(experience)[1]
        assert len(labels) == 3 * size
        assert sorted(labels.unique().tolist()) == sorted(experience.classes_in_this_experience)


def test_items_and_attributes(digits):
    item = digits.train_stream[0].dataset[0]
    assert len(item) == 2 and item[0].dtype == torch.uint8 and item[0].shape == (1, 8, 8) and type(item[1]) is int
    assert not hasattr(digits.train_stream[0], "task_labels")
    assert digits.class_names[7] == "7" and digits.seed == 0
    assert [sorted(digits.class_order[i : i + 2]) for i in range(0, 10, 2)] == classes(digits.train_stream)


def test_the_seed_drives_class_and_sample_order_but_not_which_images(digits):
    def stream(seed):
        return class_incremental_stream("digits", groups=1, seed=seed, train_per_class=4, test_per_class=2)

    one, same, other = (as_tensors(stream(seed).train_stream[0]) for seed in (0, 0, 1))
    assert torch.equal(one[0], same[0]) and not torch.equal(one[0], other[0])
    assert stream(0).class_order != stream(1).class_order
    as_set = [{image.numpy().tobytes() for image in images} for images, _ in (one, other)]
    assert as_set[0] == as_set[1]
    assert one[1].tolist() != sorted(one[1].tolist())


def test_the_global_generator_is_left_alone():
    before = torch.random.get_rng_state()
    class_incremental_stream("digits", train_per_class=2)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_ids_of_a_pair_stay_as_they_are():
    part = TensorDataset(torch.zeros(4, 3, 5, 5, dtype=torch.uint8), torch.tensor([70, 3, 70, 900]))
    stream = class_incremental_stream((part, part), groups=3)
    assert sorted(sum(classes(stream.train_stream), [])) == [3, 70, 900]


@pytest.mark.parametrize("groups, error", [(11, ValueError), (0, ValueError), (2.0, TypeError)])
def test_groups_out_of_range(groups, error):
    with pytest.raises(error, match=f"groups={groups}"):
        class_incremental_stream("digits", groups=groups, train_per_class=2)


def test_mini_experiences_are_avalanches_and_nothing_keeps_them(digits):
    ours = online_stream(digits.train_stream[:2], 7)
    theirs = split_online_stream(digits.train_stream[:2], 7, shuffle=False)
    assert ours.name == theirs.name
    for _ in range(2):  # again, as it is asked to
        for one, other in zip(ours, theirs, strict=True):
            one, other = one.logging(), other.logging()
            assert list(one.dataset.targets) == list(other.dataset.targets)
            assert one.origin_experience is other.origin_experience
            for name in ("current_experience", "is_first_subexp", "is_last_subexp", "sub_stream_length"):
                assert getattr(one, name) == getattr(other, name)
    kept = weakref.ref(next(iter(ours)))
    gc.collect()
    assert kept() is None


def test_a_mini_experience_has_at_least_one_sample(digits):
    with pytest.raises(ValueError, match="batch_size=0"):
        online_stream(digits.train_stream, 0)
