"""Each of other authors' methods against a loop of its own, on random vectors and on real features."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from avalanche_f2ocl import FrozenBackbone, FrozenModel, check_rehearsal_free, held_bytes, load_model
from avalanche_f2ocl.config import F2OCLConfig, FrozenConfig
from avalanche_f2ocl.heads.make import make_head
from avalanche_f2ocl.rivals import RIVALS, rival_options
from tests import rival_loops as loops
from tests.helpers import as_tensors, learned, train_online

WIDTH = 60
FEWER = {"projection": WIDTH}
"""For methods with random features: so that loops are quick, and samples enough."""
PAGE = Path(__file__).parents[1] / "docs" / "rivals.md"
PUBLISHED = [name for name in RIVALS if not name.endswith("-scaled")]
TOLERANCE = 1e-5
"""Of the scores' spread."""


def small(name):
    return FEWER if RIVALS[name].options.get("projection") else {}


def by_loop(name, x, y, test, head, first, last):
    """Scores of a method's loop; first: its first mini-batch; last: size of its last task."""
    projection = getattr(head, "projection", None)
    drawn = {} if projection is None else {"matrix": projection.matrix.double().numpy()}
    if hasattr(projection, "phases"):
        drawn |= {"phases": projection.phases.double().numpy(), "gamma": loops.scale(first)}
    base, _, variant = name.partition("-scaled" if name.endswith("-scaled") else "-task")
    if base in ("ranpac", "layup"):
        options = {"scaled": name.endswith("-scaled"), "last": last if name.endswith("-task") else None}
        return loops.ranpac(x, y, test, **drawn, **options)
    if name.endswith("-scaled"):
        function, penalty = {
            "f-oal": (lambda v: 1 / (1 + np.exp(-v)), 1.0),
            "g-acil": (lambda v: np.maximum(0, v), 100.0),
        }[base]
        h, test_h = (function(v @ drawn["matrix"]) for v in (x, test))
        return loops.ridge(h, y, test_h, penalty, scaled=True)
    return getattr(loops, name.replace("-", "_"))(x, y, test, **drawn)


def difference(ours, theirs):
    """The largest, in units of the spread of a sample's scores; what all classes have in common left out."""
    ours, theirs = (scores - scores.mean(1, keepdims=True) for scores in (ours, theirs))
    return np.abs(ours - theirs).max() / theirs.std()


@pytest.mark.parametrize("name", RIVALS)
def test_equals_its_loop_on_random_vectors(name, draw):
    y = torch.arange(90) % 4
    x, test = (torch.randn(n, 12, generator=draw) + 2 for n in (90, 20))
    x[torch.arange(90), y] += 1
    head = make_head(FrozenConfig(**rival_options(name, small(name))), [12])
    head.add_rows(4)
    for part in torch.arange(90).split(10):
        head.update(x[part], y[part])
        if hasattr(head, "end_task") and part[-1] in (49, 89):
            head.end_task()
    theirs = by_loop(name, x.double().numpy(), y.numpy(), test.double().numpy(), head, x[:10].double().numpy(), 40)
    assert difference(head.logits(test).double().numpy(), theirs) < TOLERANCE


@pytest.fixture(scope="module")
def stream(vit, digits):
    """Images and labels in the order of the stream, classes numbered as they come, and the same of test images."""
    parts = [as_tensors(experience) for experience in digits.train_stream[:2]]
    images, labels = (torch.cat(part) for part in zip(*parts, strict=True))
    tests = torch.cat([as_tensors(experience)[0] for experience in digits.test_stream[:2]])[::2]
    return images, labels, tests, len(parts[-1][0])


@torch.no_grad()
def stock_features(vit, prepared, kind):
    """What timm's own model gives: the embedding, or class tokens after blocks."""
    if kind == "q":
        return vit.forward_head(vit.forward_features(prepared), pre_logits=True).double().numpy()
    tokens = []
    hooks = [block.register_forward_hook(lambda _, __, out: tokens.append(out[:, 0])) for block in vit.blocks]
    vit(prepared)
    for hook in hooks:
        hook.remove()
    if kind == "fused":
        return vit.norm(torch.stack(tokens).mean(0)).double().numpy()
    return torch.cat(tokens[-6:], dim=1).double().numpy()


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name != "layup-task"])
def test_equals_its_loop_on_real_features(name, vit, stream):
    images, labels, tests, last = stream
    model = FrozenModel.rival(name, vit, precision="float32", **small(name))
    for part in torch.arange(len(images)).split(10):
        model.learn(images[part], labels[part])
        if part[-1] + 1 in (len(images) - last, len(images)):
            model.end_task()
    kind = model.config.head_features
    x, test = (stock_features(vit, model.backbone.prepare(part), kind) for part in (images, tests))
    y = model.classes.rows(labels).numpy()
    theirs = by_loop(name, x, y, test, model.head, x[:10], last)
    ours = model(tests).double().numpy()
    assert (ours.argmax(1) == theirs.argmax(1)).mean() > 0.99
    assert difference(ours, theirs) < 100 * TOLERANCE  # of features that are float32


@pytest.mark.parametrize("name", PUBLISHED)
def test_keeps_and_needs_what_it_says(name, small_vit, digits):
    rival, options = RIVALS[name], small(name)
    strategy = FrozenBackbone.rival(name, backbone=small_vit, evaluator=None, **options)
    train_online(strategy, digits.train_stream[:1])
    before = held_bytes(strategy)
    train_online(strategy, digits.train_stream[:1])
    assert held_bytes(strategy) == before
    for experience in digits.train_stream[:1]:
        assert check_rehearsal_free(strategy, experience.dataset).passed
    head = strategy.model.head
    per_class = sum(getattr(head, name)[0].nbytes for name in head.row_names)
    assert (per_class >= 8 * 32**2) == rival.class_covariances

    never_told = FrozenModel.rival(name, small_vit, **options)
    for images, labels in map(as_tensors, [digits.train_stream[0]] * 2):
        for part in torch.arange(len(images)).split(10):
            never_told.learn(images[part], labels[part])
    told, other = learned(strategy.model), learned(never_told)
    assert rival.boundaries != all(torch.equal(told[name], other[name]) for name in other)


ROWS = re.findall(r"^\| `([\w-]+)` \| (yes|no) \| (yes|no) \| `([^`]+)` \|$", PAGE.read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", RIVALS)
def test_the_table_says_what_it_needs_and_keeps(name, small_vit):
    (boundaries, covariances, formula), *more = [row[1:] for row in ROWS if row[0] == name]
    rival, model = RIVALS[name], FrozenModel.rival(name, small_vit, **small(name))
    assert not more and (boundaries, covariances) == tuple(
        "yes" if is_so else "no" for is_so in (rival.boundaries, rival.class_covariances)
    )
    model.add_classes(torch.arange(7))
    state = {name: t for name, t in model.head.state_dict().items() if not name.startswith(("distinct", "projection"))}
    kept = sum(tensor.nbytes for tensor in state.values())
    F = sum(model.plan.widths)
    P = WIDTH if "projection" in small(name) else F
    assert kept - eval(formula, {"F": F, "P": P, "C": 7}) in (0, 8, 16)  # and a scalar or two


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_file_predicts_and_learns_on_as_the_model(name, small_vit, images, labels, tmp_path):
    model = FrozenModel.rival(name, small_vit, **small(name))
    model.learn(images, labels)
    model.save(tmp_path / "learned.safetensors")
    again = load_model(tmp_path / "learned.safetensors", small_vit)
    for _ in range(2):
        assert torch.equal(again(images), model(images))
        model.learn(images.flip(0), labels.flip(0))
        again.learn(images.flip(0), labels.flip(0))


def test_a_class_with_one_sample_is_left_out_of_every_moment(small_vit, images, labels, tmp_path):
    model = FrozenModel.rival("ranpac-task", small_vit, **FEWER)
    model.learn(images, labels)
    model.end_task()
    model.learn(images[:8], [7, 8, 8, 9, 8, 10, 10, 4])
    model.save(tmp_path / "learned.safetensors", min_class_count=2)
    again = load_model(tmp_path / "learned.safetensors", small_vit)
    for one in (7, 9):
        model.forget(one)
    assert again.class_ids.tolist() == model.class_ids.tolist()
    for name, tensor in learned(model).items():
        if name.endswith("moment"):
            torch.testing.assert_close(learned(again)[name], tensor)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_page_links_its_source(name):
    assert f"https://arxiv.org/abs/{RIVALS[name].source.rpartition('arXiv ')[2]})" in PAGE.read_text()


def test_an_unknown_name_is_told_with_those_there_are():
    with pytest.raises(ValueError, match="name='ranpack': allowed are 'ranpac', 'ranpac-task'"):
        FrozenModel.rival("ranpack", "micro_vit")


def test_given_options_win():
    config = FrozenBackbone.rival("klda", backbone="micro_vit", evaluator=None, projection=9, gamma=0.1).model.config
    assert (config.head, config.projection, config.gamma) == ("klda", 9, 0.1)


def test_f2ocl_is_not_told_of_boundaries():
    with pytest.raises(ValueError, match="penalty='task': allowed are 'gcv', 'past'"):
        F2OCLConfig(penalty="task")
