import shutil


def test_accuracy_is_that_of_the_predictions(f2ocl, learned, own):
    shutil.move(own / "test" / "red" / "0.png", own / "test" / "green" / "red.png")
    shutil.copytree(own / "test" / "blue", own / "test" / "sky")
    code, result, _ = f2ocl("eval", learned, own, "--quiet", "--json", "--batch-size", 5)
    assert code == 0 and result["images"] == 16
    assert result["per_class"] == {"blue": 1, "green": 0.8, "red": 1, "sky": 0}
    assert result["accuracy"] == 11 / 16 and result["accuracy_over_classes"] == 2.8 / 4
    assert result["unknown_classes"] == ["sky"]
    said = f2ocl("eval", learned, own, "--quiet")[1]
    assert "accuracy 68.75 % on 16 images, 70.00 % over 4 classes" in said
    assert "1 classes have not been learned: sky" in said and "lowest: sky 0 %, green 80 %" in said


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
    for name, said in (("nowhere", "no such file"), ("damaged", "is damaged or of another kind")):
        code, _, err = f2ocl("eval", tmp_path / name, pictures)
        assert code == 1 and said in err and err.count("\n") == 1
