"""Bad input, a failing plugin or a full device harms nothing that a strategy has learned."""

import warnings

import pytest
import torch
from avalanche.benchmarks import benchmark_from_datasets, split_online_stream
from avalanche.benchmarks.utils import as_classification_dataset
from avalanche.core import SupervisedPlugin
from avalanche.training.plugins import EvaluationPlugin
from hypothesis import HealthCheck, example, given, seed, settings
from hypothesis import strategies as st
from timm.models import VisionTransformer
from torch.utils.data import Dataset

from avalanche_f2ocl.metrics.training import SkippedBatches
from avalanche_f2ocl.state.rows import ClassRows
from avalanche_f2ocl.state.undo import Undo
from avalanche_f2ocl.testing.bad_batches import CLASSES, KINDS, Case, harm, random_case, refusals, same, state
from avalanche_f2ocl.testing.failures import Failure
from tests.contracts.strategies import STRATEGIES
from tests.helpers import as_tensors


@pytest.fixture(scope="module")
def tiny_vit():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return VisionTransformer(img_size=32, patch_size=16, embed_dim=16, depth=5, num_heads=2, num_classes=0)


@pytest.fixture(params=STRATEGIES)
def name(request):
    return request.param


@pytest.fixture
def make(name, tiny_vit):
    return lambda **options: STRATEGIES[name](**{"backbone": tiny_vit, "evaluator": None, **options})


LABELS = st.lists(st.integers(0, CLASSES - 1), min_size=2, max_size=4).map(tuple)
CASES = st.builds(
    Case,
    before=st.lists(LABELS, max_size=2).map(tuple),
    bad=LABELS,
    after=LABELS,
    kind=st.sampled_from(KINDS),
    call=st.integers(0, 3),
    seed=st.integers(0, 9),
)


def test_any_bad_minibatch_is_refused_and_leaves_no_trace(name, make, monkeypatch):
    """Every kind once, and 4 cases drawn for each strategy."""
    monkeypatch.setattr(ClassRows, "MIN_CHUNK", 1)  # tables grow often
    number = list(STRATEGIES).index(name)

    @seed(number)
    @settings(max_examples=4, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(CASES)
    def check(case):
        assert harm(make, case) is None

    for i, kind in enumerate(KINDS):
        check = example(random_case(100 * number + i, kind))(check)
    check()


def test_they_are_counted_and_harm_would_be_noticed(make, monkeypatch):
    # Two good ones before: the third is where LwF without boundaries takes a new teacher.
    cases = [Case(((0, 1),) * n, (1, 2), (0, 3), "after_training_iteration last") for n in range(3)]
    assert refusals(make, cases) == (3, 3)
    monkeypatch.setattr(Undo, "save_attributes", lambda *_: None)
    assert refusals(make, cases) == (0, 3)


class Stream(Dataset):
    """Digits; some samples cannot be read, or have a NaN pixel."""

    def __init__(self, images, labels, bad=(), unreadable=False):
        self.images, self.targets, self.bad, self.unreadable = images, labels.tolist(), set(bad), unreadable

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, index):
        image = self.images[index]
        if index in self.bad:
            if self.unreadable:
                raise Failure
            image = torch.full_like(image, float("nan"))
        return image, self.targets[index]


def experiences(images, labels, **bad):
    data = as_classification_dataset(Stream(images, labels, **bad))
    return benchmark_from_datasets(train=[data]).train_stream


def train(strategy, stream):
    return strategy.train(split_online_stream(stream, 10, shuffle=False), eval_streams=[])


@pytest.fixture
def samples(digits):
    """Six mini-batches of ten, float images; the fourth brings new classes."""
    parts = [as_tensors(experience) for experience in digits.train_stream[:2]]
    return torch.cat([x[:30] for x, _ in parts]) / 255, torch.cat([y[:30] for _, y in parts])


BAD = range(20, 40)


@pytest.fixture
def good(samples):
    keep = [i for i in range(60) if i not in BAD]
    return experiences(samples[0][keep], samples[1][keep])


@pytest.mark.parametrize("unreadable", [False, True], ids=["NaN", "unreadable"])
def test_a_stream_with_bad_minibatches_skipped_is_the_stream_without_them(make, samples, good, unreadable):
    strategy, twin = make(on_bad_input="skip"), make()
    with pytest.warns(UserWarning, match="skipped") as noted:
        train(strategy, experiences(*samples, bad=BAD, unreadable=unreadable))
    train(twin, good)
    assert strategy.skipped == 2 and sum("was skipped" in str(w.message) for w in noted) == 1
    assert twin.skipped == 0
    assert same(state(strategy), state(twin))


def test_after_a_refusal_training_goes_on_as_if_there_had_been_none(make, samples, good):
    strategy, twin = make(), make()
    for stream, refused in ((experiences(*samples, bad=BAD), 2), (good, 0)):
        one = strategy if refused else twin
        for experience in split_online_stream(stream, 10, shuffle=False):
            try:
                one.train(experience, eval_streams=[])
            except ValueError as error:
                assert "NaN" in str(error)
                refused -= 1
        assert refused == 0
    assert same(state(strategy), state(twin))


@pytest.mark.filterwarnings("ignore:a mini-batch was skipped")
def test_in_a_plain_experience_the_other_minibatches_are_learned(make, samples):
    for unreadable in (False, True):
        strategy = make(on_bad_input="skip")
        strategy.train(experiences(*samples, bad=BAD, unreadable=unreadable), shuffle=False, eval_streams=[])
        assert (strategy.skipped, strategy.model.batches) == (2, 4)


@pytest.mark.filterwarnings("ignore:a mini-batch was skipped")
def test_running_out_of_memory_is_skipped_and_a_failing_plugin_is_not(make, samples, good):
    class Fail(SupervisedPlugin):
        error = None

        def after_training_iteration(self, strategy, **kwargs):
            if strategy.clock.train_iterations == 1 and self.error is not None:
                error, self.error = self.error, None
                raise error

    fail = Fail()
    strategy, twin = make(on_bad_input="skip"), make()
    strategy.plugins.insert(len(strategy.plugins) - 1, fail)
    minibatches = list(split_online_stream(good, 10, shuffle=False))
    for experience in minibatches:
        twin.train(experience, eval_streams=[])
    strategy.train(minibatches[0], eval_streams=[])
    before = state(strategy)
    fail.error = ValueError("a bug")
    with pytest.raises(ValueError, match="a bug"):
        strategy.train(minibatches[1], eval_streams=[])
    assert strategy.skipped == 0 and same(state(strategy), before)
    fail.error = torch.cuda.OutOfMemoryError("full")
    strategy.train(minibatches[1], eval_streams=[])
    assert strategy.skipped == 1 and same(state(strategy), before)
    for experience in minibatches[1:]:
        strategy.train(experience, eval_streams=[])
    assert same(state(strategy), state(twin))


@pytest.mark.filterwarnings("ignore:a mini-batch was skipped")
def test_skipped_minibatches_are_a_metric(make, samples):
    strategy = make(on_bad_input="skip", evaluator=EvaluationPlugin(SkippedBatches()))
    train(strategy, experiences(*samples, bad=BAD))
    metrics = strategy.eval(experiences(*samples))
    assert list(metrics.values()) == [2] and next(iter(metrics)).startswith("SkippedBatches/eval_phase")


def test_bad_input_in_an_evaluation_is_never_skipped(make, samples, good):
    strategy = make(on_bad_input="skip", eval_every=1, peval_mode="iteration")
    bad = experiences(*samples, bad=BAD)
    strategy.train(good, shuffle=False, eval_streams=[good])
    before = state(strategy)
    with warnings.catch_warnings(), pytest.raises(ValueError, match="NaN"):
        warnings.simplefilter("error")
        strategy.eval(bad)
    assert strategy.skipped == 0 and same(state(strategy), before)


def test_a_loader_that_never_recovers_is_given_up(make):
    class Dead:
        def __iter__(self):
            return self

        def __next__(self):
            raise Failure

        def __len__(self):
            return 3

    strategy = make(on_bad_input="skip")
    strategy.is_training, strategy.dataloader = True, Dead()
    with pytest.warns(UserWarning, match="skipped"), pytest.raises(Failure):
        strategy.training_epoch()
    assert strategy.skipped == 3


def test_the_option_is_checked(make):
    with pytest.raises(ValueError, match="on_bad_input='ignore'.*'raise', 'skip'"):
        make(on_bad_input="ignore")
