import pytest
import torch
from avalanche.benchmarks import split_online_stream

from avalanche_f2ocl import (
    F2OCLStrategy,
    ViTNCM,
    drifting_stream,
    long_tailed_stream,
    recurring_stream,
    shuffled_stream,
    si_blurry_stream,
)
from avalanche_f2ocl.datasets.loading import load
from avalanche_f2ocl.streams.orders import long_tail_counts, recurring_order
from tests.helpers import as_tensors, train_online

SMALL = dict(train_per_class=20, test_per_class=5)
MAKERS = [si_blurry_stream, drifting_stream, long_tailed_stream, shuffled_stream, recurring_stream]


@pytest.fixture(params=MAKERS, ids=lambda maker: maker.__name__)
def make(request):
    return request.param


def test_one_training_and_one_test_experience_of_every_image(make):
    stream = make("digits", **SMALL)
    (train,), (test,) = stream.train_stream, stream.test_stream
    data = load("digits", **SMALL)
    assert as_tensors(test)[0].equal(data.test.images) and as_tensors(test)[1].tolist() == data.test.targets
    images, labels = as_tensors(train)
    pairs = sorted((image.numpy().tobytes(), int(label)) for image, label in zip(images, labels, strict=True))
    everything = sorted(
        (image.numpy().tobytes(), label) for image, label in zip(data.train.images, data.train.targets, strict=True)
    )
    if make is long_tailed_stream:
        assert set(pairs) <= set(everything) and len(pairs) == long_tail_counts(20, 10, 100).sum()
    else:
        assert pairs == everything


def test_items_and_attributes(make):
    stream = make("digits", seed=3, **SMALL)
    image, label = stream.train_stream[0].dataset[0]
    assert image.dtype == torch.uint8 and image.shape == (1, 8, 8) and type(label) is int
    assert not hasattr(stream.train_stream[0], "task_labels")
    assert stream.seed == 3 and stream.class_names[7] == "7"
    labels = as_tensors(stream.train_stream[0])[1].tolist()
    assert sorted(stream.class_order) == list(range(10))
    assert stream.class_order == sorted(range(10), key=labels.index)


def test_the_seed_drives_the_order(make):
    one, same, other = (as_tensors(make("digits", seed=seed, **SMALL).train_stream[0]) for seed in (0, 0, 1))
    assert one[0].equal(same[0]) and one[1].equal(same[1])
    assert one[1].tolist() != other[1].tolist()


def test_mini_batches_hold_several_classes_and_a_strategy_learns_them(make, vit):
    stream = make("digits", **SMALL)
    online = list(split_online_stream(stream.train_stream, 15, shuffle=False))
    labels = [sorted(set(as_tensors(batch)[1].tolist())) for batch in online]
    assert sum(len(classes) > 1 for classes in labels) >= len(labels) / 3
    strategy = train_online(ViTNCM(backbone=vit, evaluator=None), stream.train_stream)
    assert sorted(strategy.model.class_ids.tolist()) == list(range(10))
    images, labels = as_tensors(stream.test_stream[0])
    assert (strategy.model.predict(images) == labels).double().mean() > 0.3


def test_f2ocl_learns_a_stream_without_boundaries(vit):
    stream = si_blurry_stream("digits", **SMALL)
    strategy = train_online(F2OCLStrategy(backbone=vit, prompt_length=3, evaluator=None), stream.train_stream)
    images, labels = as_tensors(stream.test_stream[0])
    assert (strategy.model.predict(images) == labels).double().mean() > 0.5


def test_options_reach_the_order():
    stream = recurring_stream("digits", groups=2, repeats=3, seed=4, **SMALL)
    targets = torch.tensor(load("digits", **SMALL).train.targets)
    assert as_tensors(stream.train_stream[0])[1].equal(targets[recurring_order(targets, 4, groups=2, repeats=3)])


def test_ids_of_a_pair_and_the_image_size_stay(make):
    part = torch.utils.data.TensorDataset(
        torch.zeros(6, 3, 5, 5, dtype=torch.uint8), torch.tensor([70, 3, 70, 900, 3, 900])
    )
    groups = {"groups": 3} if make is recurring_stream else {}
    stream = make((part, part), **groups)
    assert sorted(stream.class_order) == [3, 70, 900] and stream.train_stream[0].dataset[0][0].shape == (3, 5, 5)


@pytest.mark.parametrize("options, error", [({"train_per_class": 0}, ValueError), ({"per_class": 3}, TypeError)])
def test_bad_loading_options(make, options, error):
    with pytest.raises(error, match="per_class"):
        make("digits", **options)
