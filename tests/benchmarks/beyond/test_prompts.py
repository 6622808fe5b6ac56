import pytest
import torch

from avalanche_f2ocl import F2OCLModel
from avalanche_f2ocl.backbone.load import load_backbone
from avalanche_f2ocl.config import PRESETS
from benchmarks.beyond import prompts
from benchmarks.beyond.features import RECOMMENDED, Trial
from benchmarks.beyond.prompts import Prompt, Training, grouped, train


@pytest.fixture(scope="module")
def backbone():
    return load_backbone("micro_vit", precision="float32")


@pytest.fixture(scope="module")
def images():
    return torch.randint(0, 256, (24, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


ROWS = torch.arange(24) % 6


def test_a_stream_of_groups_has_every_image_once_and_no_class_again():
    parts = list(grouped(ROWS, seed=0, groups=3, size=5))
    assert sorted(torch.cat(parts).tolist()) == list(range(24)) and max(map(len, parts)) == 5
    groups = [set(ROWS[torch.cat(parts[i : i + 2])].tolist()) for i in (0, 2, 4)]
    assert [len(group) for group in groups] == [2, 2, 2] and len(set.union(*groups)) == 6


@pytest.mark.parametrize("passes", [1, 3])
def test_a_prompt_is_trained_as_the_model_trains_it(backbone, images, passes, monkeypatch):
    monkeypatch.setattr(prompts, "MAX_BATCHES", 2)
    best = {**PRESETS["best"], "head": "ncm", "head_features": "z", "grid": 1}
    model = F2OCLModel(backbone, passes=passes, seed=4, **best)
    prompt = Prompt(backbone, prefix=False, seed=4)
    prompt.values.data = model.pool.prompts.detach().clone()
    moved = train(prompt, images, ROWS, Training(passes), seed=2)
    for part in list(grouped(ROWS, seed=2))[:2]:
        model.learn(images[part], ROWS[part])
    torch.testing.assert_close(prompt.values.detach(), model.pool.prompts.detach(), rtol=1e-3, atol=1e-4)
    assert moved == pytest.approx(model.pool.moved.item(), rel=1e-3) and moved > 0


def test_a_prefix_is_trained_and_changes_the_prompted_pass_only(backbone, images):
    trial, prompt = Trial(backbone, images, ROWS, 0.25, seed=0), Prompt(backbone, prefix=True, seed=0)
    before = prompt.values.detach().clone()
    assert train(prompt, images, ROWS, Training(prefix=True, augmented=True), seed=0) > 0
    assert not torch.equal(prompt.values, before)
    whole, prompted = trial.unprompted(False, 1.0, 1), trial.layers(True, RECOMMENDED.zoom, 1)
    trial.use(prompt.tokens, prompt.in_blocks)
    assert torch.equal(trial.unprompted(False, 1.0, 1), whole)
    assert not torch.allclose(trial.layers(True, RECOMMENDED.zoom, 1), prompted)
    with prompt.in_blocks(), torch.no_grad():
        own = backbone.encode_layers(backbone.tokens(images, RECOMMENDED.zoom))[1]
    torch.testing.assert_close(trial.layers(True, RECOMMENDED.zoom, 1), own.half(), rtol=1e-2, atol=1e-2)


def test_every_variant_is_there(backbone, images, monkeypatch):
    monkeypatch.setattr(prompts, "MAX_BATCHES", 1)
    found = prompts.trials((backbone, images, ROWS, 0.25), seed=0)
    assert list(found) == list(prompts.VARIANTS) and all(0 <= value <= 100 for value in found.values())
