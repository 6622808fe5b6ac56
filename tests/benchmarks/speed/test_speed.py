"""Every row of the speed table, as small as can be, and what the table makes of it."""

import json
import sys

import pytest
import torch
from timm.models import VisionTransformer
from timm.models.vision_transformer import Block

from benchmarks.speed import __main__ as speed
from benchmarks.speed import rows as speed_rows
from benchmarks.speed import timing
from benchmarks.speed.__main__ import ROWS, Row, measure, table
from benchmarks.speed.bare import bare_prediction, bare_step
from benchmarks.speed.setting import Setting
from benchmarks.speed.timing import by_turns, ratio


def small_vit():
    return VisionTransformer(img_size=16, patch_size=8, embed_dim=16, depth=5, num_heads=2, num_classes=0)


@pytest.fixture
def small(monkeypatch):
    sizes = {"make_vit": small_vit, "batches": 2, "repeats": 1, "images": 100, "classes": 150, "steps": (2, 4)}
    for name, row in ROWS.items():
        only = "cpu" if row.only == "cuda" else row.only
        monkeypatch.setitem(ROWS, name, Row(row.what, row.against, row.measure, row.goal, {}, row.at_least, only))
    return Setting(torch.device("cpu"), **sizes)


AS_IMAGES_THROUGH_BLOCKS = {
    "eager": 1, "step": 1, "evaluation": 1, "evaluation-cuda": 1, "classes": 1, "avalanche": 0,
    "l2p": 2 / 3, "memory": 1,
}  # fmt: skip
"""What rows come to where the time is the number of images that blocks see: a step has as many passes as what it is
compared with, but for L2P's, which has two of three."""


@pytest.mark.parametrize("name", ROWS)
def test_a_row_compares_like_with_like(small, name, monkeypatch):
    seen, forward = [0], Block.forward

    def count(block, x, *args, **kwargs):
        seen[0] += len(x)
        return forward(block, x, *args, **kwargs)

    def images_through_blocks(function, device):
        before = seen[0]
        function()
        return float(seen[0] - before)

    if name in AS_IMAGES_THROUGH_BLOCKS:
        monkeypatch.setattr(Block, "forward", count)
        monkeypatch.setattr(timing, "seconds", images_through_blocks)
    value = measure([name], small)[name]["value"]
    assert value == pytest.approx(AS_IMAGES_THROUGH_BLOCKS.get(name, value), abs=0.05)
    assert value > 0 or name == "avalanche"


def test_the_whole_protocol_repeats_the_images_it_is_given(small):
    small.dataset = "digits"
    small.images = 2000
    result = speed_rows.whole_protocol(small)
    assert (result["training_images"], result["test_images"]) == (2000, 400)


def test_rows_that_cannot_run_are_named(capsys):
    results = measure(["eager"], Setting(torch.device("cpu"), small_vit))
    assert results == {"eager": {"not_run": "needs cuda"}}
    text = table(results)
    assert "not run (needs cuda)" in text and text.count("not run (not asked for)") == len(ROWS) - 1


@pytest.mark.parametrize("value, missed", [(1.05, False), (1.2, True)])
def test_a_goal_that_is_missed_is_marked(value, missed):
    assert ("missed" in table({"step": {"value": value}})) == missed
    assert ("missed" in table({"eager": {"value": value}}))


def test_the_command_keeps_rows_of_earlier_calls(tmp_path, monkeypatch, capsys):
    path = tmp_path / "speed" / "speed-cpu.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"rows": {"memory": {"value": 1.0}}}))
    monkeypatch.setattr(speed, "measure", lambda names, setting: {name: {"value": 1.0} for name in names})
    monkeypatch.setattr(sys, "argv", ["speed", "--rows", "step", "--device", "cpu", "--results", str(tmp_path)])
    speed.main()
    assert set(json.loads(path.read_text())["rows"]) == {"memory", "step"}
    assert "1 x" in path.with_suffix(".md").read_text()


def test_times_are_taken_by_turns():
    calls = []
    times = by_turns({name: lambda name=name: calls.append(name) for name in "ab"}, torch.device("cpu"), 3)
    assert calls == list("abababab") and all(len(values) == 3 for values in times.values())
    assert ratio({"a": [2.0, 9.0, 4.0], "b": [1.0, 3.0, 4.0]}, "a", "b") == 2


def test_bare_passes_are_the_models_own(vit, images):
    """Same ViT, same number of tokens: counted by the blocks' calls."""
    seen = []
    note = lambda module, args, out: seen.append((tuple(args[0].shape), out.requires_grad))  # noqa: E731
    hook = vit.blocks.register_forward_hook(note)
    prompt = torch.nn.Parameter(torch.rand(1, 20, 128))
    pixels = torch.randn(10, 3, 32, 32)
    bare_step(vit.requires_grad_(False), pixels, prompt)
    bare_prediction(vit, pixels, prompt.detach().expand(10, -1, -1))
    hook.remove()
    assert seen == [
        ((10, 65, 128), False), ((10, 85, 128), True), ((10, 85, 128), False),
        ((10, 65, 128), False), ((10, 85, 128), False),
    ]  # fmt: skip
