import shutil
import signal

import pytest
import torch

from avalanche_f2ocl import F2OCLModel, ViTNCMModel
from avalanche_f2ocl.cli import train
from avalanche_f2ocl.cli.images import minibatches
from avalanche_f2ocl.datasets.image_source import ImageSource
from avalanche_f2ocl.heads import RidgeHead
from avalanche_f2ocl.models.loading import load_model

MICRO = ("--backbone", "micro_vit", "--quiet")


def test_it_learns_what_a_loop_written_out_does(f2ocl, pictures, tmp_path):
    out = tmp_path / "a.safetensors"
    arguments = ("--method", "f2ocl", "--order", "classes", "--batch-size", 7, "--option", "prompt_length=3")
    code, result, _ = f2ocl("train", pictures, "--out", out, *MICRO, *arguments, "--json", "--seed", 4)
    assert code == 0 and (result["images"], result["classes"]) == (24, 3)
    got = load_model(out)
    assert got.class_names == {0: "blue", 1: "green", 2: "red"} and got.head.used("counts").tolist() == [8, 8, 8]
    assert got.batches == 4 and got.config.prompt_length == 3 and got.config.seed == 4


@pytest.mark.parametrize("method", ["best", "f2ocl", "vit-ridge", "vit-ncm", "ranpac", "fecam"])
def test_methods(f2ocl, pictures, tmp_path, method):
    out = tmp_path / "a.safetensors"
    fewer = ("--option", "projection=40") if method == "ranpac" else ()
    code, said, _ = f2ocl("train", pictures, "--out", out, *MICRO, "--method", method, *fewer)
    assert code == 0 and said.startswith("learned 24 images in ") and "3 classes known" in said
    model = load_model(out)
    assert type(model) is train.METHODS[method][0]
    code, result, _ = f2ocl("eval", out, pictures, "--quiet", "--json")
    assert result["accuracy"] == 1  # three plain colours


def test_zip_and_folder_with_and_without_train_teach_the_same(f2ocl, pictures, tmp_path):
    zipped = shutil.make_archive(str(tmp_path / "zipped"), "zip", pictures)
    states = []
    for images in (pictures, zipped, pictures / "train"):
        f2ocl("train", images, "--out", tmp_path / "a.safetensors", *MICRO, "--method", "f2ocl", "--overwrite")
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


def test_images_that_cannot_be_read_are_named_and_passed_over(f2ocl, own, tmp_path):
    (own / "train" / "red" / "3.png").write_bytes(b"damaged")
    (own / "train" / "red" / "notes.txt").write_text("no image")
    (own / "yellow").mkdir()
    shutil.copy(own / "train" / "red" / "1.png", own / "yellow")
    out, damaged = tmp_path / "a.safetensors", str(own / "train" / "red" / "3.png")
    code, result, said = f2ocl("train", own, "--out", out, *MICRO, "--json")
    assert code == 0 and result["images"] == 23 and result["unreadable"] == [damaged]
    assert result["passed_over"] == ["train/red/notes.txt", "yellow/1.png"]
    assert f"skipped: {damaged!r} cannot be read as an image (its format is unknown" in said
    assert "skipped, because not in a class folder or not an image: 2 (train/red/notes.txt, yellow/1.png)" in said
    assert f"1 ({damaged}) could not be read" in f2ocl("train", own, "--out", out, *MICRO, "--overwrite")[1]


def test_strict_stops_at_the_first_and_saves_what_was_learned(f2ocl, own, tmp_path):
    (own / "train" / "red" / "3.png").write_bytes(b"damaged")
    out, strict = tmp_path / "a.safetensors", (*MICRO, "--strict", "--order", "classes", "--batch-size", 4)
    code, _, said = f2ocl("train", own, "--out", out, *strict)
    assert code == 1 and "red/3.png' cannot be read as an image" in said and said.count("\n") == 1
    count = int(load_model(out).head.used("counts").sum())
    assert 16 <= count < 24 and f"what was learned from {count} images is in {out}" in said


def test_no_image_that_can_be_read_writes_nothing(f2ocl, own, tmp_path):
    for path in (own / "train").rglob("*.png"):
        path.write_bytes(b"damaged")
    code, _, said = f2ocl("train", own, "--out", tmp_path / "a", *MICRO)
    assert code == 1 and "none of 24 images can be read" in said and not (tmp_path / "a").exists()


def stopping_at(monkeypatch, count, what):
    """Lets so many mini-batches through, then does something."""

    def stopped(*args):
        for i, batch in enumerate(minibatches(*args)):
            if i == count:
                what()
            yield batch

    monkeypatch.setattr(train, "minibatches", stopped)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_saves_what_was_learned(f2ocl, pictures, tmp_path, monkeypatch, number):
    stopping_at(monkeypatch, 2, lambda: signal.raise_signal(number))
    out = tmp_path / "a.safetensors"
    code, _, said = f2ocl("train", pictures, "--out", out, *MICRO)
    assert code == 128 + number and load_model(out).batches == 2
    assert said == f"f2ocl train: stopped by {number.name}; what was learned from 20 images is in {out}\n"


def test_an_error_saves_what_was_learned(f2ocl, pictures, tmp_path, monkeypatch):
    def fail():
        raise RuntimeError("decoding stopped: worker 7 died")

    stopping_at(monkeypatch, 1, fail)
    out = tmp_path / "a.safetensors"
    code, _, said = f2ocl("train", pictures, "--out", out, *MICRO)
    assert code == 1 and load_model(out).batches == 1
    assert said == f"f2ocl train: decoding stopped: worker 7 died; what was learned from 10 images is in {out}\n"


def test_a_signal_before_the_first_mini_batch_writes_nothing(f2ocl, pictures, tmp_path, monkeypatch):
    stopping_at(monkeypatch, 0, lambda: signal.raise_signal(signal.SIGINT))
    code, _, said = f2ocl("train", pictures, "--out", tmp_path / "a", *MICRO)
    assert code == 130 and said == "f2ocl train: stopped by SIGINT; nothing has been learned\n"
    assert not (tmp_path / "a").exists()


def test_it_saves_on_the_way(f2ocl, pictures, tmp_path, monkeypatch):
    saved, out = [], tmp_path / "a.safetensors"
    real = F2OCLModel.save
    monkeypatch.setattr(F2OCLModel, "save", lambda m, *a, **o: (saved.append(m.batches), real(m, *a, **o)))
    f2ocl("train", pictures, "--out", out, *MICRO, "--batch-size", 4, "--save-every", 7)
    assert saved == [2, 4, 6, 6] and load_model(out).batches == 6


def test_an_existing_file_is_replaced_only_where_that_is_said(f2ocl, pictures, tmp_path):
    out = tmp_path / "a.safetensors"
    f2ocl("train", pictures, "--out", out, *MICRO)
    before = out.read_bytes()
    code, _, said = f2ocl("train", pictures, "--out", out, *MICRO)
    assert code == 1 and "--overwrite replaces it" in said and out.read_bytes() == before
    assert f2ocl("train", pictures, "--out", out, *MICRO, "--overwrite", "--seed", 1)[0] == 0
    assert f2ocl("train", pictures, "--out", out, "--from", out, "--quiet")[0] == 0
    assert load_model(out).batches == 6


def test_a_share_held_out_is_tested(f2ocl, pictures, tmp_path):
    out = tmp_path / "a.safetensors"
    code, result, _ = f2ocl("train", pictures, "--out", out, *MICRO, "--hold-out", 0.25, "--json")
    assert code == 0 and result["images"] == 18 and result["held_out"]["images"] == 6
    assert result["held_out"]["accuracy"] == 1
    code, again, said = f2ocl("eval", out, pictures / "train", "--hold-out", 0.25, "--quiet", "--json")
    assert again["images"] == 6 and again["accuracy"] == 1 and "warning" not in said
    assert "learned from these very images" in f2ocl("eval", out, pictures / "train", "--quiet")[2]
    said = f2ocl("train", pictures, "--out", tmp_path / "b", *MICRO, "--hold-out", 0.25)[1]
    assert said.endswith("accuracy 100.00 % on 6 images held out\n")


def test_another_file_is_not_replaced_by_going_on(f2ocl, learned, own, tmp_path):
    other = tmp_path / "other.safetensors"
    other.write_bytes(b"kept")
    code, _, said = f2ocl("train", own, "--from", learned, "--out", other, "--quiet")
    assert code == 1 and "exists already" in said and other.read_bytes() == b"kept"
    assert f2ocl("train", own, "--from", learned, "--out", other, "--quiet", "--overwrite")[0] == 0


def test_photographs_become_squares_as_is_said(f2ocl, own, tmp_path):
    for fit in ("auto", "crop", "squash", "pad"):
        f2ocl("train", own, "--out", tmp_path / fit, *MICRO, "--fit", fit)
        model = load_model(tmp_path / fit)
        assert model.config.fit == model.backbone.image_fit.fit == fit
    code, _, said = f2ocl("train", own, "--from", tmp_path / "pad", "--out", tmp_path / "pad", "--fit", "crop")
    assert code == 1 and "--fit cannot be given with --from" in said


@pytest.mark.parametrize("workers", [0, 2])
def test_processes_that_decode_change_nothing(f2ocl, own, tmp_path, workers):
    (own / "train" / "red" / "3.png").write_bytes(b"damaged")
    f2ocl("train", own, "--out", tmp_path / "a", *MICRO, "--method", "vit-ncm", "--workers", workers)
    source = ImageSource(own / "train")
    model = load_model(tmp_path / "a")
    names = [name for name in source.images if name != "red/3.png"]
    images = torch.stack([source.pixels(name, model.backbone.image_fit) for name in names])
    expected = ViTNCMModel("micro_vit")
    expected.learn(images, [name.split("/")[0] for name in names])
    for class_id, name in model.class_names.items():
        [other] = [i for i, n in expected.class_names.items() if n == name]
        rows = [m.classes.rows(torch.tensor([i])) for m, i in ((model, class_id), (expected, other))]
        torch.testing.assert_close(model.head.means()[rows[0]], expected.head.means()[rows[1]])


def test_with_backbone_no_weights_are_asked_for(f2ocl, pictures, tmp_path, monkeypatch):
    out = tmp_path / "a.safetensors"
    f2ocl("train", pictures, "--out", out, *MICRO, "--with-backbone")
    assert "in the file" in f2ocl("info", out)[1]
    f2ocl("train", pictures, "--from", out, "--out", out, "--quiet")
    assert "micro_vit at 32 px, in the file" in f2ocl("info", out)[1]


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["nowhere", "--out", "a"], "no such folder, zip or tar: 'nowhere'"),
        (["{pictures}", "--out", "no/a"], "there is no folder 'no'"),
        (["{pictures}/train/red", "--out", "a"], "has no images in <class>/ or train/<class>/"),
        (["{pictures}", "--out", "a", "--backbone", "nonsense"], "timm knows no model 'nonsense'"),
        (["{pictures}", "--out", "a", "--option", "nonsense=1"], "unknown option nonsense; method 'best' has"),
        (
            ["{pictures}", "--out", "a", "--method", "vit-ncm", "--option", "lr=1"],
            "unknown option lr; method 'vit-ncm' has",
        ),
        (["{pictures}", "--out", "a", "--backbone", "micro_vit", "--option", "lr=-1"], "lr=-1: must be positive"),
        (["{pictures}", "--out", "a", "--from", "nowhere"], "no such file: 'nowhere'"),
        (["{pictures}", "--out", "a", "--from", "x", "--method", "best"], "--method cannot be given with --from"),
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


def test_what_it_saves_at_the_end_predicts_without_solving(f2ocl, pictures, tmp_path, monkeypatch):
    out, prepared = tmp_path / "a.safetensors", []
    prepare = RidgeHead.prepare
    monkeypatch.setattr(RidgeHead, "prepare", lambda head: (prepared.append(1), prepare(head))[1])
    arguments = ("--method", "vit-ridge", "--batch-size", 4, "--save-every", 8)
    assert f2ocl("train", pictures, "--out", out, *MICRO, *arguments)[0] == 0
    assert len(prepared) == 3  # its heads, once each: not at the saves in between
    monkeypatch.setattr(RidgeHead, "solve", None)
    code, result, _ = f2ocl("eval", out, pictures, "--quiet", "--json")
    assert code == 0 and result["accuracy"] == 1
