import signal
import warnings
from functools import partial

import pytest
import torch
from avalanche.core import SupervisedPlugin
from torch.utils.data import DataLoader

from avalanche_f2ocl import F2OCLStrategy, ViTNCM
from avalanche_f2ocl.baselines import ER
from avalanche_f2ocl.models.model_file import read_model_file
from avalanche_f2ocl.strategies.run_file import learned
from benchmarks.trust.kills import WRITE_STEPS, finish, in_a_child, kill, survives
from tests.contracts.strategies import STRATEGIES
from tests.helpers import as_tensors, train_online


@pytest.mark.parametrize(
    "name, plain, batch, callback",
    [
        ("f2ocl", True, 6, "before_forward"),
        ("f2ocl-seen-all-lda", False, 5, "os.replace"),
        ("lwf", False, 9, "after_training_iteration"),
    ],
)
def test_killed_and_resumed_ends_bit_for_bit_as_uninterrupted(name, plain, batch, callback, vit, digits, tmp_path):
    make = partial(STRATEGIES[name], backbone=vit)
    assert survives(make, digits, plain, batch, callback, tmp_path / "whole")


def test_a_run_that_ends_otherwise_is_noticed(vit, digits, tmp_path):
    make = partial(STRATEGIES["linear-mask"], backbone=vit)
    other = partial(make, seed=1)  # shuffles otherwise
    assert in_a_child(lambda: finish(other, digits, tmp_path / "other", True, tmp_path / "whole")) == 0
    assert not survives(make, digits, True, 5, "before_forward", tmp_path / "whole")


@pytest.mark.parametrize("step", WRITE_STEPS)
def test_killed_while_writing_the_old_file_stays(step, vit, digits, path, monkeypatch):
    strategy = F2OCLStrategy(backbone=vit, evaluator=None, prompt_length=3)
    train_online(strategy, digits.train_stream[:1])
    strategy.save(path)
    before = path.read_bytes()

    def write():
        monkeypatch.setattr(f"avalanche_f2ocl.safe_file.{step}", kill)
        strategy.save(path)

    assert in_a_child(write) == -signal.SIGKILL
    assert path.read_bytes() == before and read_model_file(path)[1]["batches_done"] == 4


def test_the_backbone_goes_with_it_when_asked(trained_vit, digits, path, images):
    strategy = F2OCLStrategy(backbone=trained_vit, evaluator=None, prompt_length=3)
    train_online(strategy, digits.train_stream[:1])
    strategy.save(path, backbone=True)
    loaded = F2OCLStrategy.load(path, evaluator=None)
    assert torch.equal(loaded.model(images), strategy.model(images))
    assert (
        loaded.model.backbone.vit is not trained_vit
        and loaded.model.backbone.checksum == strategy.model.backbone.checksum
    )


def test_options_given_on_loading_win(vit, digits, path):
    strategy = F2OCLStrategy(backbone=vit, evaluator=None, prompt_length=3)
    train_online(strategy, digits.train_stream[:1])
    strategy.save(path)
    assert F2OCLStrategy.load(path, backbone=vit, evaluator=None, lr=0.5).model.config.lr == 0.5
    with pytest.raises(ValueError, match="pool.prompts is .*3, 32.*expected .*5, 32"):
        F2OCLStrategy.load(path, backbone=vit, evaluator=None, prompt_length=5)


def test_classes_with_few_samples_are_left_out(vit, digits, path):
    strategy = F2OCLStrategy(backbone=vit, evaluator=None, prompt_length=3)
    train_online(strategy, digits.train_stream[:1])
    images, labels = as_tensors(digits.train_stream[1])
    strategy.model.learn(images[:1], labels[:1])
    strategy.save(path, min_class_count=2)
    loaded = F2OCLStrategy.load(path, backbone=vit, evaluator=None)
    kept = strategy.model.class_ids[:2]
    assert torch.equal(loaded.model.class_ids, kept) and len(strategy.model.class_ids) == 3
    assert torch.equal(loaded.model.head.means(), strategy.model.head.means()[:2])
    assert torch.equal(loaded.model.pool.used("prompts"), strategy.model.pool.used("prompts")[:2])
    for head in strategy.model.head.heads:
        last = head.used("sums")[2]
        for tensor in read_model_file(path)[0].values():
            assert not (tensor.dim() == 2 and tensor.shape[1] == 32 and (tensor == last).all(1).any())
    with pytest.raises(ValueError, match="without 1 classes"):
        F2OCLStrategy(backbone=vit, evaluator=None, prompt_length=3).resume(path)


@pytest.mark.parametrize("projection", [0, 30])
def test_nor_does_their_sample_stay_in_the_second_moments(projection, vit, digits, path):
    options = dict(backbone=vit, evaluator=None, head="ridge", projection=projection)
    strategy = train_online(ViTNCM(**options), digits.train_stream[:1])
    moment = strategy.model.head.moment.clone()
    images, labels = as_tensors(digits.train_stream[1])
    strategy.model.learn(images[:1], labels[:1])
    strategy.save(path, min_class_count=2)
    loaded = ViTNCM.load(path, backbone=vit, evaluator=None).model.head.moment
    assert not torch.allclose(strategy.model.head.moment, moment)
    torch.testing.assert_close(loaded, moment)


def test_the_backbone_goes_into_the_file_as_it_came(trained_vit, digits, path):
    strategy = ViTNCM(backbone=trained_vit, evaluator=None, precision="bfloat16")
    train_online(strategy, digits.train_stream[:1])
    strategy.save(path, backbone=True)
    again = ViTNCM.load(path, evaluator=None).model
    assert again.backbone.vit.blocks[0].attn.qkv.weight.dtype == torch.bfloat16
    for name, weight in again.backbone.weights.state_dict().items():
        assert torch.equal(weight, trained_vit.state_dict()[name])
    images = as_tensors(digits.test_stream[0])[0][:5]
    assert torch.equal(again(images), strategy.model(images))


def test_resuming_without_a_file_or_too_late(saved, vit, digits, tmp_path):
    strategy = F2OCLStrategy(backbone=vit, evaluator=None, prompt_length=3)
    assert not strategy.resume(tmp_path / "none", missing_ok=True)
    with pytest.raises(FileNotFoundError, match="none"):
        strategy.resume(tmp_path / "none")
    train_online(strategy, digits.train_stream[:1])
    with pytest.raises(RuntimeError, match="learned already"):
        strategy.resume(saved)


def test_saving_while_catching_up_is_refused(saved, vit, path):
    strategy = F2OCLStrategy(backbone=vit, evaluator=None, prompt_length=3)
    assert strategy.resume(saved) and strategy.catching_up
    with pytest.raises(RuntimeError, match="caught up"):
        strategy.save(path)


def test_er_is_not_saved_because_it_stores_images(vit, path):
    with pytest.raises(NotImplementedError, match="stores images"):
        ER(backbone=vit, evaluator=None).save(path)
    assert not path.exists()


@pytest.mark.parametrize("fails", ["fetch", "check"])
def test_a_skipped_minibatch_counts_where_a_run_is_resumed(fails, vit, digits, path):
    """The stream's second mini-batch is bad; the run is saved after the third."""
    images, labels = as_tensors(digits.train_stream[0])

    class Spoilt(torch.utils.data.Dataset):
        def __len__(self):
            return 40

        def __getitem__(self, i):
            if fails == "fetch" and i == 15:
                raise OSError("unreadable")
            return images[i], labels[i].float() if fails == "check" and 10 <= i < 20 else labels[i]

    class Loader(SupervisedPlugin):
        def before_training_epoch(self, strategy, **kwargs):
            strategy.dataloader = DataLoader(Spoilt(), batch_size=10)

        def before_training_iteration(self, strategy, **kwargs):
            if strategy.clock.train_iterations == 3 and not path.exists():
                strategy.save(path)

    make = partial(F2OCLStrategy, backbone=vit, evaluator=None, prompt_length=3, on_bad_input="skip")
    ends = []
    for _ in range(2):
        strategy = make(plugins=[Loader()])
        strategy.resume(path, missing_ok=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            strategy.train(digits.train_stream[0], eval_streams=[])
        assert strategy.skipped == 1 and strategy.model.batches == 3 and not strategy.catching_up
        ends.append(learned(strategy).tensors())
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])


class Fixed(F2OCLStrategy):
    """A subclass that fixes an option."""

    def __init__(self, *, mine=3, **options):
        super().__init__(temperature=0.5, **options)
        self.mine = mine


def test_a_subclass_that_fixes_an_option_saves_what_the_model_has(vit, digits, path):
    strategy = train_online(Fixed(backbone=vit, prompt_length=2, evaluator=None, mine=4), digits.train_stream[:1])
    assert strategy.options["temperature"] == 0.5 and strategy.options["mine"] == 4
    strategy.save(path)
    loaded = Fixed.load(path, backbone=vit, evaluator=None)
    assert loaded.options == strategy.options and loaded.mine == 4
    images, _ = as_tensors(digits.test_stream[0])
    assert torch.equal(loaded.model(images), strategy.model(images))
    other = Fixed(backbone=vit, prompt_length=2, evaluator=None, mine=4)
    assert other.resume(path)
