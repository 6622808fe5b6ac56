"""What a machine decided goes into files, and holds where they are opened."""

import pytest
import torch

from avalanche_f2ocl import F2OCLModel, F2OCLStrategy, FrozenBackbone, FrozenModel, load_model
from avalanche_f2ocl.heads import ridge
from avalanche_f2ocl.models.model_file import read_model_file
from avalanche_f2ocl.models.resolved import resolved
from tests.helpers import train_online


@pytest.fixture
def path(tmp_path):
    return tmp_path / "learned.safetensors"


def decide(monkeypatch, dtype, width):
    """As another machine would."""
    monkeypatch.setattr(
        "avalanche_f2ocl.backbone.vit.working_dtype",
        lambda precision, *_: {"auto": dtype}.get(precision) or getattr(torch, precision),
    )
    monkeypatch.setattr(ridge, "default_width", lambda: width)


MODELS = {
    "f2ocl": lambda vit: F2OCLModel(vit, prompt_length=2),
    "frozen": lambda vit: FrozenModel(vit, head="ridge"),
    "ensemble": lambda vit: F2OCLModel.best(vit, prompt_length=2, projection=None),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_file_opens_as_it_was_learned(name, vit, images, labels, path, monkeypatch):
    decide(monkeypatch, torch.bfloat16, 30)
    model = MODELS[name](vit)
    model.learn(images, labels)
    model.save(path)
    width = None if name == "f2ocl" else 30
    noted = read_model_file(path)[1]["resolved"]
    assert noted == {"dtype": "bfloat16", "projection": width, "readout": "cls", "threads": torch.get_num_threads()}
    decide(monkeypatch, torch.float32, 20)
    for other in (type(model).from_file(path, device="cpu"), load_model(path, device="cpu")):
        assert resolved(other.backbone, other.head) == noted
        assert torch.equal(other(images), model(images))
    asked = load_model(path, device="cpu", precision="float32")
    assert asked.backbone.dtype == torch.float32 and not torch.equal(asked(images), model(images))
    strategy_type = FrozenBackbone if name == "frozen" else F2OCLStrategy
    strategy = strategy_type.load(path, device="cpu", evaluator=None)
    assert torch.equal(strategy.model(images), model(images))


def test_a_width_that_was_given_is_not_changed(vit, images, labels, path, monkeypatch):
    model = FrozenModel(vit, head="ridge", projection=25, precision="float32")
    model.learn(images, labels)
    model.save(path)
    decide(monkeypatch, torch.bfloat16, 20)
    other = load_model(path, device="cpu")
    assert other.options == model.options and torch.equal(other(images), model(images))


@pytest.mark.parametrize(
    "dtype, width, message",
    [
        (torch.float32, 30, "dtype bfloat16, here it is float32: .*precision='bfloat16'"),
        (torch.bfloat16, 20, "projection 30, here it is 20: .*projection=30"),
    ],
)
def test_a_run_does_not_go_on_with_other_decisions(dtype, width, message, small_vit, digits, path, monkeypatch):
    def make(**options):
        return FrozenBackbone(backbone=small_vit, head="ridge", evaluator=None, **options)

    decide(monkeypatch, torch.bfloat16, 30)
    train_online(strategy := make(), digits.train_stream[:1])
    strategy.save(path)
    decide(monkeypatch, dtype, width)
    other = make()
    with pytest.raises(ValueError, match=message):
        other.resume(path)
    assert other.model.batches == 0 and not other.catching_up
    assert make(precision="bfloat16", projection=30).resume(path)


def test_other_threads_are_said(small_vit, digits, path):
    train_online(strategy := FrozenBackbone(backbone=small_vit, evaluator=None), digits.train_stream[:1])
    strategy.save(path)
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        with pytest.warns(UserWarning, match=f"written with {threads} threads, here there are {threads + 1}"):
            assert FrozenBackbone(backbone=small_vit, evaluator=None).resume(path)
    finally:
        torch.set_num_threads(threads)


def test_a_run_goes_on_under_the_same_readout_however_it_was_asked_for(small_vit, images, tmp_path):
    readouts = ("auto", "cls", "patch")
    auto, given, other = (F2OCLStrategy(backbone=small_vit, evaluator=None, readout=r) for r in readouts)
    auto.model.learn(images, [0, 1, 2] * 4)
    auto.save(tmp_path / "run.st")
    assert given.resume(tmp_path / "run.st") and torch.equal(given.model(images), auto.model(images))
    with pytest.raises(ValueError, match="learned with readout cls, here it is patch: .*readout='cls'"):
        other.resume(tmp_path / "run.st")
    assert other.model.batches == 0
