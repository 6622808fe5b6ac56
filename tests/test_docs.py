"""The Python in README.md and docs/ runs, page by page, with the bundled ViT and a few digits in place of downloads."""

import re
from pathlib import Path

import pytest
import timm
import torch

from avalanche_f2ocl import datasets
from avalanche_f2ocl.backbone import vit as backbone
from avalanche_f2ocl.backbone.weights import load_vit
from avalanche_f2ocl.testing.running import few_digits

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "benchmarks" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WITH_CODE = [page for page in PAGES if "```python" in page.read_text()]


@pytest.fixture
def offline(monkeypatch, tmp_path):
    few_digits()  # loaded once: the contract suite has its own
    monkeypatch.chdir(tmp_path)

    def load_small(name, weights=None, size=None):
        return load_vit("micro_vit" if isinstance(name, str) and timm.is_model(name) else name)

    monkeypatch.setattr(backbone, "load_vit", load_small)
    data = datasets.load("digits", train_per_class=6, test_per_class=3)
    parts = {"train": data.train, "test": data.test}
    few = {split: (part.images, torch.tensor(part.targets)) for split, part in parts.items()}, data.class_names
    monkeypatch.setattr(datasets.loading, "_digits", lambda: few)
    monkeypatch.setattr(datasets.loading, "_cifar100", lambda root: few)


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_code_runs(page, offline, capsys):
    names = {"__name__": "page"}
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        exec(compile(block, page.name, "exec"), names)


def test_there_is_code_to_run():
    assert {"README.md", "first_hour.md", "serving.md", "saving.md"} <= {page.name for page in WITH_CODE}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = page.read_text()
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)|^```\{(?:image|include)\} (\S+)", text, re.MULTILINE):
        target = "".join(target)
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_commands_named_are_there():
    from avalanche_f2ocl.cli.parser import make_parser

    commands = next(a for a in make_parser()._actions if a.choices and "train" in a.choices).choices
    for page in PAGES:
        for name in re.findall(r"(?:^|`)f2ocl (\w+)", page.read_text(), re.MULTILINE):
            assert name in commands, (page.name, name)
        for module in re.findall(r"python -m (benchmarks[\w.]*\w)", page.read_text()):
            place = ROOT / module.replace(".", "/")
            assert place.with_suffix(".py").exists() or (place / "__main__.py").exists(), module
        for example in re.findall(r"examples/\w+\.py", page.read_text()):
            assert (ROOT / example).exists()
