import shutil

import numpy as np
import pytest
from PIL import Image

from avalanche_f2ocl import F2OCLModel, F2OCLStrategy, load_model
from tests.helpers import train_online


@pytest.fixture
def file(learned, tmp_path):
    """A copy that may be changed."""
    return shutil.copy(learned, tmp_path / "mine.safetensors")


def counts(f2ocl, file):
    return dict(line.split("\t") for line in f2ocl("counts", file)[1].split("\n") if line)


def test_a_class_is_renamed_merged_and_forgotten(f2ocl, file, pictures):
    code, out, err = f2ocl("rename", file, "green", "grün")
    assert code == 0 and err == "" and "Saved:" in out and "3 classes known" in out
    assert counts(f2ocl, file) == {"grün": "8", "blue": "8", "red": "8"}
    _, result, _ = f2ocl("merge", file, "gru\u0308n", "blue", "--json")  # the accent written in the other way
    assert result == {"file": str(file), "classes": 2, "changed": {"grün": 0, "blue": 16}, "unreadable": []}
    assert f2ocl("rename", file, str(load_model(file).class_id("blue")), "blue or green")[0] == 0
    assert set(counts(f2ocl, file)) == {"blue or green", "red"}
    assert f2ocl("forget", file, "blue or green", "red")[0] == 0
    assert counts(f2ocl, file) == {}
    code, _, _ = f2ocl("train", pictures, "--from", file, "--out", file, "--quiet")
    assert code == 0 and len(counts(f2ocl, file)) == 3


def test_images_are_taken_out_and_get_another_label(f2ocl, file, pictures):
    wrong = [pictures / "train" / "red" / f"{i}.png" for i in range(3)]
    assert f2ocl("relabel", file, *wrong[:2], "--label", "red", "--to", "scarlet", "--quiet")[0] == 0
    assert f2ocl("relabel", file, wrong[2], "--label", "red", "--to", "blue", "--quiet")[0] == 0
    assert counts(f2ocl, file) == {"red": "5", "blue": "9", "green": "8", "scarlet": "2"}
    code, out, _ = f2ocl("unlearn", file, *wrong[:2], "--label", "scarlet", "--quiet")
    assert code == 0 and "scarlet: 0 images" in out
    assert f2ocl("relabel", file, wrong[2], "--label", "blue", "--to", "red", "--quiet")[0] == 0
    assert counts(f2ocl, file) == {"red": "6", "blue": "8", "green": "8"}
    _, out, _ = f2ocl("predict", file, wrong[0], "--quiet")
    assert out.split("\t")[1] == "red"


def test_what_is_refused_leaves_the_file_as_it_was(f2ocl, file, pictures, tmp_path):
    before, train = file.read_bytes(), pictures / "train"
    bad, strange = tmp_path / "bad.png", tmp_path / "strange.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (24, 24, 3), np.uint8)).save(strange)
    bad.write_bytes(b"no image")
    for args, message in [
        (("rename", file, "gren", "grey"), "class 'gren' is not known: did you mean 'green'?"),
        (("rename", file, "green", "red"), "name='red': class"),
        (("merge", file, "red", "red"), "are the same class"),
        (("forget", file, "green", "7"), "class '7' is not known"),
        (("unlearn", file, train / "red" / "0.png", strange, "--label", "red"), "not among those"),
        (("unlearn", file, train / "red", train / "red" / "0.png", "--label", "red"), "9 images of class 'red'"),
        (("unlearn", file, bad, "--label", "red"), "none of 1 image can be read"),
        (("relabel", file, strange, "--label", "red", "--to", "blue"), "not among those"),
        (("rename", tmp_path / "nowhere", "green", "grey"), "nowhere"),
    ]:
        code, out, err = f2ocl(*args, *(["--quiet"] if args[0] in ("unlearn", "relabel") else []))
        assert code == 1 and out == "" and message in err.splitlines()[-1], err
        assert file.read_bytes() == before
    code, result, err = f2ocl("unlearn", file, bad, train / "red" / "0.png", "--label", "red", "--quiet", "--json")
    assert code == 0 and result["unreadable"] == [str(bad)] and result["changed"] == {"red": 7}


def test_a_strategys_run_goes_on_after_it(f2ocl, vit, digits, tmp_path):
    path = tmp_path / "run.safetensors"
    make = lambda: F2OCLStrategy(backbone="micro_vit", prompt_length=2, evaluator=None)  # noqa: E731
    train_online(make(), digits.train_stream[:1]).save(path, backbone=True)
    class_id = F2OCLModel.from_file(path).class_ids[0].item()
    assert f2ocl("rename", path, class_id, "first")[0] == 0
    assert f2ocl("info", path, "--json")[1]["backbone"]["in_file"]
    strategy = make()
    strategy.resume(path)
    train_online(strategy, digits.train_stream[:2])
    assert strategy.model.class_names[class_id] == "first" and strategy.model.batches == 8
