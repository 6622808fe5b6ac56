"""What users pass in: how it is named, found again and asked for; docs/extending.md shows and tests what it does."""

from functools import partial
from importlib.metadata import EntryPoint

import pytest
import torch
from torch import nn

from avalanche_f2ocl import F2OCLModel, F2OCLStrategy, FrozenModel, extensions, load_model, register
from avalanche_f2ocl.cli import info
from avalanche_f2ocl.config import F2OCLConfig
from avalanche_f2ocl.heads import NCMHead
from avalanche_f2ocl.state.prompts import OnePrompt, PromptPool, elect


class Halved(NCMHead):
    """Half the cosine; notes what it was made with."""

    def __init__(self, dim, seed=0, factor=0.5):
        super().__init__(dim)
        self.seed, self.factor = seed, factor

    def logits(self, z):
        return self.factor * super().logits(z)


class Own(OnePrompt):
    pass


def last(rows, num_rows, draw):
    return rows[-1:]


def at(rows, num_rows, draw):
    return torch.tensor([num_rows])


HEAD = f"{__name__}.Halved"


@pytest.fixture
def learned(small_vit, images, labels, tmp_path):
    """A model with a head of a user's own, and its file."""
    model = F2OCLModel(small_vit, prompt_length=2, head=Halved)
    model.learn(images, labels)
    model.save(tmp_path / "learned.safetensors")
    return model, tmp_path / "learned.safetensors"


def unknown(monkeypatch):
    """As in another process, which has not imported it."""
    monkeypatch.setattr(extensions, "_KNOWN", {option: {} for option in extensions.EXTENSIBLE})


def test_an_option_holds_the_name_and_the_model_the_thing(small_vit):
    model = F2OCLModel(small_vit, head=Halved, head_features="z", prompt_assignment=Own, prompt_election=last)
    assert (type(model.head), type(model.pool), model.pool.found_by_key) == (Halved, Own, False)
    assert model.options["head"] == HEAD and model.options["prompt_election"] == f"{__name__}.last"
    assert F2OCLConfig(head=HEAD) == F2OCLConfig(head=Halved)


def test_a_head_gets_its_width_and_the_seed_where_it_takes_one(small_vit):
    plain = FrozenModel(small_vit, head=partial(NCMHead, metric="euclidean")).head
    assert (plain.sums.shape[1], plain.metric) == (32, "euclidean")
    assert FrozenModel(small_vit, head=Halved, seed=3).head.seed == 3
    assert FrozenModel(small_vit, head=partial(Halved, factor=0.25), seed=3).head.factor == 0.25
    both = FrozenModel(small_vit, head=Halved, head_features="layers", blocks=2, blocks_per_head=1).head
    assert [type(head) for head in both.heads] == [Halved, Halved] and both.widths == [64, 64]


def test_in_this_process_a_file_is_opened_as_any_other(learned, images, small_vit):
    model, path = learned
    again = load_model(path, backbone=small_vit)
    assert again.head.heads[0].factor == 0.5 and torch.equal(again(images), model(images))


def test_elsewhere_a_file_says_what_it_needs(learned, monkeypatch, small_vit, images):
    model, path = learned
    unknown(monkeypatch)
    message = f"needs head='{HEAD}'.*import it and call avalanche_f2ocl.register.*No code is imported"
    for load in (load_model, F2OCLModel.from_file, F2OCLStrategy.load):
        with pytest.raises(ValueError, match=message):
            load(path, backbone=small_vit)
    with pytest.raises(ValueError, match=f"head='{HEAD}': allowed are 'ncm'"):
        F2OCLModel(small_vit, head=HEAD)
    described = info.run(type("Args", (), {"file": path}))
    assert described["needs"] == {"head": HEAD} and f"needs       head {HEAD}" in info.text(described)
    register("head", Halved)
    assert torch.equal(load_model(path, backbone=small_vit)(images), model(images))


def test_an_installed_package_may_declare_it(learned, monkeypatch, small_vit, images):
    model, path = learned
    unknown(monkeypatch)
    asked = []

    def declared(group):
        asked.append(group)
        return [
            EntryPoint("halved", HEAD.replace(".Halved", ":Halved"), group),
            EntryPoint("bad", "no.such:Thing", group),
        ]

    monkeypatch.setattr(extensions, "entry_points", declared)
    assert torch.equal(load_model(path, backbone=small_vit)(images), model(images))
    assert set(asked) == {"avalanche_f2ocl.head"}
    assert F2OCLConfig(head="halved").head == "halved"  # by the entry point's own name, too


def test_a_name_in_a_file_is_never_a_path_to_code(learned, monkeypatch, small_vit):
    unknown(monkeypatch)
    monkeypatch.setitem(__import__("sys").modules, __name__, None)  # importing it would fail otherwise
    with pytest.raises(ValueError, match="needs head="):
        load_model(learned[1], backbone=small_vit)


def test_a_run_goes_on_with_the_same_head_only(small_vit, tmp_path, digits):
    from tests.helpers import train_online

    path = tmp_path / "run.safetensors"
    train_online(F2OCLStrategy(backbone=small_vit, head=Halved, evaluator=None), digits.train_stream[:1]).save(path)
    assert F2OCLStrategy(backbone=small_vit, head=Halved, evaluator=None).resume(path)
    with pytest.raises(ValueError, match=f"head='{HEAD}' there, 'ncm' here"):
        F2OCLStrategy(backbone=small_vit, evaluator=None).resume(path)


@pytest.mark.parametrize(
    "value, message",
    [
        (lambda dim: NCMHead(dim), "must be a class, a function without a closure"),
        (partial(Halved, 3), "positional arguments"),
        (partial(Halved, factor=torch.ones(1)), r"this one has tensor\(\[1.\]\)"),
        (Halved(2).train, "must be a class"),
        (Halved(2), "must be a class"),
    ],
    ids=["lambda", "positional", "tensor", "bound method", "object"],
)
def test_what_no_name_tells_from_others_is_refused(value, message):
    with pytest.raises(TypeError, match=message):
        F2OCLConfig(head=value)


def test_closures_are_refused():
    factor = 3

    def make(dim):
        return Halved(dim, factor=factor)

    with pytest.raises(TypeError, match="without a closure"):
        register("head", make)


def test_an_unknown_option_is_named():
    with pytest.raises(ValueError, match="option='backbone': allowed are 'head', 'prompt_assignment'"):
        register("backbone", Halved)


class NoHead(nn.Module):
    def __init__(self, dim):
        super().__init__()


class NoPrompts(PromptPool):
    def __getattribute__(self, name):
        if name == "gather":
            raise AttributeError
        return super().__getattribute__(name)


def test_what_is_no_head_or_no_prompts_is_refused_before_anything_is_learned(small_vit):
    with pytest.raises(TypeError, match="head=.*NoHead' made a NoHead, which lacks counts, update"):
        F2OCLModel(small_vit, head=NoHead)
    with pytest.raises(TypeError, match="prompt_assignment=.*made a NoPrompts, which lacks gather"):
        F2OCLModel(small_vit, prompt_assignment=NoPrompts)


def test_an_election_elects_one_row_in_use(images, labels, small_vit, draw):
    rows = torch.tensor([2, 0, 1])
    assert elect(rows, 3, register("prompt_election", last), draw).tolist() == [1]
    model = F2OCLModel(small_vit, prompt_length=2, prompt_election=at)
    with pytest.raises(ValueError, match=r"prompt_election=.*at' elected tensor\(\[3\]\): must be one row.*below 3"):
        model.learn(images, labels)
    assert model.batches == 0 and len(model.class_ids) == 0


def test_elections_of_a_users_own_do_not_go_with_what_is_kept_of_a_prompt():
    for option in ({"max_drift": 1.0}, {"compensate_drift": True}):
        with pytest.raises(ValueError, match=f"does not go with prompt_election='{__name__}.last'"):
            F2OCLConfig(prompt_election=last, **option)
        F2OCLConfig(prompt_election=last, prompt_assignment="shared", **option)


def test_probabilities_of_a_users_head_are_calibrated_unless_its_logits_are_slow(small_vit, images, labels):
    class Slow(Halved):
        at_once = False

    models = [FrozenModel(small_vit, head=head) for head in ("ncm", partial(Halved, factor=0.25), Slow)]
    for model in models:
        for _ in range(3):
            model.learn(images, labels)
    plain, halved, slow = (model.predict_proba(images) for model in models)
    torch.testing.assert_close(halved, plain, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(slow, models[2](images).softmax(1))
