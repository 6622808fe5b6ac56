"""Small folders of images, and the command as a function."""

import json
import shutil

import numpy as np
import pytest
from PIL import Image

from avalanche_f2ocl.cli.main import main

COLOURS = {"blue": (20, 30, 200), "green": (20, 190, 40), "red": (200, 30, 20)}


@pytest.fixture(scope="session")
def pictures(tmp_path_factory):
    """Folders train/<class>/ and test/<class>/ with noisy pictures of three colours and several sizes."""
    folder, random = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    for split, count in (("train", 8), ("test", 4)):
        for name, colour in COLOURS.items():
            (folder / split / name).mkdir(parents=True)
            for i in range(count):
                noise = random.integers(-20, 20, (20 + i, 24, 3))
                Image.fromarray((noise + colour).clip(0, 255).astype(np.uint8)).save(folder / split / name / f"{i}.png")
    return folder


@pytest.fixture
def own(pictures, tmp_path):
    """A copy of the pictures, to be spoilt."""
    return shutil.copytree(pictures, tmp_path / "own")


@pytest.fixture
def f2ocl(capsys):
    """Runs the command: exit code, what it printed (parsed where it is JSON), and what it said beside."""

    def run(*args):
        code = main([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return code, json.loads(out) if "--json" in args and code == 0 else out, err

    return run


@pytest.fixture(scope="session")
def learned(pictures, tmp_path_factory):
    """A file that knows the three colours."""
    path = tmp_path_factory.mktemp("learned") / "colours.safetensors"
    assert main(["train", str(pictures), "--out", str(path), "--backbone", "micro_vit", "--quiet"]) == 0
    return path
