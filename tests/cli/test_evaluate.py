import shutil
import unicodedata


def test_accuracy_is_that_of_the_predictions(f2ocl, learned, own):
    shutil.move(own / "test" / "red" / "0.png", own / "test" / "green" / "red.png")
    shutil.copytree(own / "test" / "blue", own / "test" / "sky")
    code, result, _ = f2ocl("eval", learned, own, "--quiet", "--json", "--batch-size", 5)
    assert code == 0 and result["images"] == 16
    assert result["per_class"] == {"blue": 1, "green": 0.8, "red": 1, "sky": 0}
    assert result["accuracy"] == 11 / 16 and result["accuracy_over_classes"] == 2.8 / 4
    assert result["unknown_classes"] == ["sky"]
    assert result["accuracy_of_known"] == 11 / 12
    said = f2ocl("eval", learned, own, "--quiet")[1]
    assert "accuracy 68.75 % of 16 images, 70.00 % as the mean of 4 classes" in said
    assert "not learned: 1 (sky); 91.67 % on the images of known classes" in said
    assert said.splitlines()[-1] == "lowest: sky 0 %, green 80 %"


def test_images_that_cannot_be_read_are_named_and_do_not_count(f2ocl, learned, own):
    (own / "test" / "red" / "0.png").write_bytes(b"damaged")
    (own / "test" / "red" / "notes.txt").write_text("no image")
    damaged = str(own / "test" / "red" / "0.png")
    code, result, said = f2ocl("eval", learned, own, "--quiet", "--json")
    assert code == 0 and (result["images"], result["accuracy"], result["unreadable"]) == (11, 1, [damaged])
    assert f"skipped: {damaged!r} cannot be read" in said and "1 (test/red/notes.txt)" in said
    assert f"could not be read: 1 ({damaged})" in f2ocl("eval", learned, own, "--quiet")[1]
    code, _, said = f2ocl("eval", learned, own, "--quiet", "--strict")
    assert code == 1 and "0.png' cannot be read as an image" in said
    for path in (own / "test").rglob("*.png"):
        path.write_bytes(b"damaged")
    code, _, said = f2ocl("eval", learned, own, "--quiet")
    assert code == 1 and "none of 12 images can be read" in said


def test_no_class_is_known(f2ocl, learned, own):
    for name in ("blue", "green", "red"):
        (own / "test" / name).rename(own / "test" / f"other {name}")
    code, result, _ = f2ocl("eval", learned, own, "--quiet", "--json")
    assert code == 0 and result["accuracy"] == 0 and result["accuracy_of_known"] is None
    assert "3 (other blue, other green, other red); no class is known" in f2ocl("eval", learned, own, "--quiet")[1]


def test_what_was_trained_on_is_no_test(f2ocl, learned, pictures, tmp_path):
    zipped = shutil.make_archive(str(tmp_path / "same"), "zip", pictures / "train")
    for images in (pictures / "train", zipped):
        said = f2ocl("eval", learned, images, "--quiet")[2]
        assert "warning: the model has learned from these very images" in said
    assert "warning" not in f2ocl("eval", learned, pictures, "--quiet")[2]


def test_a_folder_with_train_but_without_test(f2ocl, learned, own):
    shutil.rmtree(own / "test")
    code, _, said = f2ocl("eval", learned, own, "--quiet")
    assert code == 1 and "no images in <class>/ or test/<class>/; it has train/" in said


def test_an_accent_is_one_in_both_of_its_forms(f2ocl, own, tmp_path):
    for split, form in (("train", "NFC"), ("test", "NFD")):
        (own / split / "red").rename(own / split / unicodedata.normalize(form, "caf\u00e9"))
    out = tmp_path / "a"
    f2ocl("train", own, "--out", out, "--backbone", "micro_vit", "--quiet", "--method", "vit-ncm")
    code, result, _ = f2ocl("eval", out, own, "--quiet", "--json")
    assert result["unknown_classes"] == [] and result["per_class"]["caf\u00e9"] == 1


def test_a_strategys_classes_have_their_names(f2ocl, pictures, tmp_path):
    from avalanche_f2ocl import ViTNCM, class_incremental_stream
    from tests.helpers import train_online

    strategy = ViTNCM(backbone="micro_vit", evaluator=None)
    train_online(strategy, class_incremental_stream(pictures, groups=3).train_stream)
    strategy.save(tmp_path / "a")
    code, result, _ = f2ocl("eval", tmp_path / "a", pictures, "--quiet", "--json")
    assert code == 0 and result["accuracy"] == 1 and result["unknown_classes"] == []


def test_classes_without_names_go_by_their_ids(f2ocl, own, tmp_path):
    import torch

    from avalanche_f2ocl import F2OCLModel

    model = F2OCLModel("micro_vit", prompt_length=2)
    model.learn(torch.stack([torch.full((3, 32, 32), v, dtype=torch.uint8) for v in (0, 255)]), [3, 7])
    model.save(tmp_path / "a.safetensors")
    (own / "test" / "red").rename(own / "test" / "7")
    code, result, _ = f2ocl("eval", tmp_path / "a.safetensors", own, "--quiet", "--json")
    assert code == 0 and result["unknown_classes"] == ["blue", "green"]


def test_files_that_are_none(f2ocl, pictures, tmp_path):
    (tmp_path / "damaged").write_bytes(b"damaged")
    for name, said in (("nowhere", "no such file"), ("damaged", "is damaged or was not written by avalanche_f2ocl")):
        code, _, err = f2ocl("eval", tmp_path / name, pictures)
        assert code == 1 and said in err and err.count("\n") == 1
