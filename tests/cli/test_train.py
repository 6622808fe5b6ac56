import shutil

import pytest
import torch

from avalanche_f2ocl.cli import train
from avalanche_f2ocl.cli.images import minibatches
from avalanche_f2ocl.models.loading import load_model

MICRO = ("--backbone", "micro_vit", "--quiet")


def test_it_learns_what_a_loop_written_out_does(f2ocl, pictures, tmp_path):
    out = tmp_path / "a.safetensors"
    arguments = ("--method", "f2ocl", "--order", "classes", "--batch-size", 7, "--option", "prompt_length=3")
    code, result, _ = f2ocl("train", pictures, "--out", out, *MICRO, *arguments, "--json", "--seed", 4)
    assert code == 0 and (result["images"], result["classes"], result["unreadable"]) == (24, 3, [])
    got = load_model(out)
    assert got.class_names == {0: "blue", 1: "green", 2: "red"} and got.head.used("counts").tolist() == [8, 8, 8]
    assert got.batches == 4 and got.config.prompt_length == 3 and got.config.seed == 4


@pytest.mark.parametrize("method", train.METHODS)
def test_every_method(f2ocl, pictures, tmp_path, method):
    out = tmp_path / "a.safetensors"
    code, said, _ = f2ocl("train", pictures, "--out", out, *MICRO, "--method", method)
    assert code == 0 and said.startswith("learned 24 images in ") and "3 classes are known" in said
    model = load_model(out)
    assert type(model) is train.METHODS[method][0]
    code, result, _ = f2ocl("eval", out, pictures, "--quiet", "--json")
    assert result["accuracy"] == 1  # three plain colours


def test_zip_and_folder_with_and_without_train_teach_the_same(f2ocl, pictures, tmp_path):
    zipped = shutil.make_archive(str(tmp_path / "zipped"), "zip", pictures)
    states = []
    for images in (pictures, zipped, pictures / "train"):
        f2ocl("train", images, "--out", tmp_path / "a.safetensors", *MICRO, "--method", "f2ocl")
        states.append(load_model(tmp_path / "a.safetensors").state_dict())
    for other in states[1:]:
        assert all(torch.equal(value, other[name]) for name, value in states[0].items())


def test_it_goes_on_with_new_classes(f2ocl, own, tmp_path, learned):
    shutil.move(own / "train" / "red", tmp_path / "red")
    first, second = tmp_path / "1.safetensors", tmp_path / "2.safetensors"
    f2ocl("train", own, "--out", first, *MICRO)
    (tmp_path / "more").mkdir()
    shutil.move(tmp_path / "red", tmp_path / "more" / "red")
    code, result, _ = f2ocl("train", tmp_path / "more", "--from", first, "--out", second, "--quiet", "--json")
    assert code == 0 and (result["images"], result["classes"]) == (8, 3)
    model = load_model(second)
    assert sorted(model.class_names.values()) == ["blue", "green", "red"] and model.batches == 3
    assert len(load_model(first).class_ids) == 2


def test_images_that_cannot_be_read(f2ocl, own, tmp_path):
    (own / "train" / "red" / "3.png").write_bytes(b"damaged")
    out = tmp_path / "a.safetensors"
    code, _, said = f2ocl("train", own, "--out", out, *MICRO)
    assert code == 1 and "red/3.png is no image" in said and not out.exists()
    code, result, _ = f2ocl("train", own, "--out", out, *MICRO, "--skip-unreadable", "--json")
    assert code == 0 and result["images"] == 23 and result["unreadable"] == ["train/red/3.png"]
    assert "1 could not be read (train/red/3.png)" in f2ocl("train", own, "--out", out, *MICRO, "--skip-unreadable")[1]


def test_an_interrupt_saves_what_was_learned(f2ocl, pictures, tmp_path, monkeypatch):
    def interrupted(*args):
        for i, batch in enumerate(minibatches(*args)):
            if i == 2:
                raise KeyboardInterrupt
            yield batch

    monkeypatch.setattr(train, "minibatches", interrupted)
    out = tmp_path / "a.safetensors"
    code, _, said = f2ocl("train", pictures, "--out", out, *MICRO)
    assert code == 130 and "stopped after 20 images; what was learned is in" in said and load_model(out).batches == 2


def test_an_interrupt_before_the_first_mini_batch_writes_nothing(f2ocl, pictures, tmp_path, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "minibatches", interrupted)
    code, _, said = f2ocl("train", pictures, "--out", tmp_path / "a", *MICRO)
    assert code == 130 and said == "f2ocl train: interrupted\n" and not (tmp_path / "a").exists()


def test_with_backbone_no_weights_are_asked_for(f2ocl, pictures, tmp_path, monkeypatch):
    out = tmp_path / "a.safetensors"
    f2ocl("train", pictures, "--out", out, *MICRO, "--with-backbone")
    assert "in the file" in f2ocl("info", out)[1]


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["nowhere", "--out", "a"], "no such folder or zip: 'nowhere'"),
        (["{pictures}", "--out", "no/a"], "there is no folder 'no'"),
        (["{pictures}/train/red", "--out", "a"], "has no images in <class>/ or train/<class>/"),
        (["{pictures}", "--out", "a", "--backbone", "nonsense"], "timm knows no model 'nonsense'"),
        (["{pictures}", "--out", "a", "--option", "nonsense=1"], "--option nonsense: best has"),
        (["{pictures}", "--out", "a", "--method", "vit-ncm", "--option", "lr=1"], "--option lr: vit-ncm has"),
        (["{pictures}", "--out", "a", "--backbone", "micro_vit", "--option", "lr=-1"], "lr=-1: must be positive"),
        (["{pictures}", "--out", "a", "--from", "nowhere"], "no such file: 'nowhere'"),
        (["{pictures}", "--out", "a", "--from", "x", "--method", "best"], "--method: with --from it is the file that"),
        (["{pictures}", "--out", "a", "--from", "x", "--image-size", "9", "--option", "lr=1"], "--image-size, --opt"),
    ],
)
def test_errors_are_one_line(f2ocl, pictures, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    code, out, err = f2ocl("train", *[a.format(pictures=pictures) for a in arguments], "--quiet")
    assert code == 1 and not out and said in err and err.startswith("f2ocl train: ") and err.count("\n") == 1
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("arguments", [[], ["train", "x"], ["train", "x", "--out", "a", "--batch-size", "0"], ["learn"],
                                       ["train", "x", "--out", "a", "--option", "lr"]])  # fmt: skip
def test_usage(f2ocl, arguments):
    with pytest.raises(SystemExit) as left:
        f2ocl(*arguments)
    assert left.value.code == 2
