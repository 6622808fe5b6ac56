import json

import pytest
import torch
from torch.nn import functional as F

from avalanche_f2ocl import F2OCLModel
from avalanche_f2ocl.backbone.load import load_backbone
from avalanche_f2ocl.config import PRESETS
from benchmarks.beyond import features
from benchmarks.beyond.features import RECOMMENDED, WHOLE, Pass, Trial


@pytest.fixture(scope="module")
def trial():
    draw = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (24, 3, 32, 32), dtype=torch.uint8, generator=draw)
    return Trial(load_backbone("micro_vit", precision="float32"), images, torch.arange(24) % 3, 0.25, seed=1)


def test_each_class_is_split_and_no_image_is_on_both_sides(trial):
    assert sorted(torch.cat([trial.train, trial.test]).tolist()) == list(range(24))
    assert trial.labels[trial.test].bincount().tolist() == [2, 2, 2]


def test_what_is_recommended_is_what_best_does(trial):
    """An untrained ``best()`` gives its heads the same features, and they say the same."""
    model = F2OCLModel.best("micro_vit", precision="float32", seed=1, max_drift=1e-9)
    images, labels = trial.images[trial.train], trial.labels[trial.train]
    model.pool.prompts.requires_grad_(False)
    model.pool.moved.fill_(1.0)  # the prompt stands still from the beginning
    for part in torch.arange(len(images)).split(9):
        model.learn(images[part], labels[part])
    scores, evidence = map(torch.cat, zip(*map(trial.heads, (RECOMMENDED, WHOLE)), strict=True))
    odds = (evidence / (1 - evidence)) ** 4
    expected = (odds.view(-1, 1, 1) * scores).sum(0)[:, model.class_ids]
    ours = model.predict_batch(trial.images[trial.test]).logits.double()
    torch.testing.assert_close(F.normalize(ours, dim=1), F.normalize(expected, dim=1), rtol=0.02, atol=0.02)


def test_the_recommended_pass_is_that_of_the_preset():
    best = PRESETS["best"]
    assert Pass(True, best["zoom"], best["grid"]) == RECOMMENDED
    assert sum(choice == ((WHOLE, RECOMMENDED), 4) for choice in features.VARIANTS.values()) == 1


def test_means_over_seeds_and_data_sets(tmp_path):
    for i, dataset in enumerate((*features.DATASETS, "another")):
        for seed in (1, 2):
            path = tmp_path / "features" / f"{dataset}-s{seed}.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(dict.fromkeys(features.VARIANTS, 10.0 * i + seed)))
    features.publish(tmp_path, features.TABLE, list(features.VARIANTS))
    rows = (tmp_path / "features" / "table.md").read_text().splitlines()
    assert len(rows) == 2 + len(features.VARIANTS)
    assert rows[2] == "| last 4 blocks, one head | 1.50 | 11.50 | 21.50 | 31.50 | 16.50 |"
    features.publish(tmp_path, features.TABLE, list(features.VARIANTS), more=("another", "none yet"))
    rows = (tmp_path / "features" / "table.md").read_text().splitlines()
    assert rows[2] == "| last 4 blocks, one head | 1.50 | 11.50 | 21.50 | 31.50 | 41.50 | 16.50 |"
