import shutil

from avalanche_f2ocl.cli.parser import make_parser
from avalanche_f2ocl.datasets.image_source import ImageSource
from avalanche_f2ocl.models.hub import FILE
from tests.models.hub_stand_in import StandIn


def test_a_line_per_image_in_the_order_given(f2ocl, learned, pictures, tmp_path):
    zipped = shutil.make_archive(str(tmp_path / "more"), "zip", pictures / "test" / "blue")
    red = pictures / "test" / "red" / "2.png"
    code, out, _ = f2ocl("predict", learned, red, pictures / "test" / "green", zipped, "--quiet")
    rows = [line.split("\t") for line in out.splitlines()]
    assert code == 0 and [row[1] for row in rows] == ["red"] + ["green"] * 4 + ["blue"] * 4
    assert rows[0][0] == str(red) and rows[1][0].endswith("green/0.png") and rows[5][0].endswith("more.zip/0.png")
    assert all(0 < float(row[2]) <= 1 for row in rows)


def test_several_classes_an_image_and_json(f2ocl, learned, pictures):
    code, result, _ = f2ocl("predict", learned, pictures / "test" / "red", "--topk", 5, "--json", "--batch-size", 3)
    assert code == 0 and len(result) == 4
    for row in result:
        assert {c["class"] for c in row["classes"]} == {"blue", "green", "red"} and row["classes"][0]["class"] == "red"
        shares = [c["probability"] for c in row["classes"]]
        assert shares == sorted(shares, reverse=True) and abs(sum(shares) - 1) < 0.001


def test_images_that_cannot_be_read_are_named_and_passed_over(f2ocl, learned, own):
    (own / "test" / "red" / "1.png").write_bytes(b"damaged")
    (own / "test" / "red" / "notes.txt").write_text("no image")
    code, out, said = f2ocl("predict", learned, own / "test" / "red", "--quiet", "--batch-size", 2)
    names = [line.split("\t")[0].split("/")[-1] for line in out.splitlines()]
    assert code == 0 and names == ["0.png", "2.png", "3.png"]
    assert "red/1.png' cannot be read as an image" in said
    assert f"skipped, because not an image: 1 ({own}/test/red/notes.txt)" in said
    code, out, said = f2ocl("predict", learned, own / "test" / "red", "--quiet", "--batch-size", 1, "--strict")
    assert code == 1 and len(out.splitlines()) == 1 and "1.png' cannot be read" in said


def test_what_is_no_image(f2ocl, learned, tmp_path):
    (tmp_path / "a.png").write_bytes(b"damaged")
    (tmp_path / "notes.txt").write_text("no image")
    (tmp_path / "empty").mkdir()
    for name, said, lines in (
        ("a.png", "a.png' cannot be read as an image", 2),
        ("notes.txt", "notes.txt' cannot be read as an image", 2),
        ("empty", "has no images in it", 1),
        ("nowhere.png", "no such file or folder", 1),
    ):
        code, out, err = f2ocl("predict", learned, tmp_path / name, "--quiet")
        assert code == 1 and not out and said in err and err.count("\n") == lines
    code, result, _ = f2ocl("predict", learned, tmp_path / "a.png", "--quiet", "--json")
    assert code == 1


def test_lines_come_as_soon_as_they_are_known(learned, pictures, monkeypatch):
    from avalanche_f2ocl.cli import predict

    arguments = ["predict", str(learned), str(pictures / "test"), "--quiet", "--batch-size", "4", "--workers", "0"]
    read = []
    real = ImageSource.pixels
    monkeypatch.setattr(ImageSource, "pixels", lambda source, *args: read.append(args) or real(source, *args))
    results = predict.run(make_parser().parse_args(arguments))
    next(results)
    assert len(read) == 4
    assert len(list(results)) == 11 and len(read) == 12


def test_names_stay_on_their_line(f2ocl, learned, pictures, tmp_path):
    odd = tmp_path / "a\tb\nc.png"
    shutil.copy(pictures / "test" / "red" / "0.png", odd)
    _, out, _ = f2ocl("predict", learned, odd, "--quiet")
    assert out.count("\n") == 1 and out.startswith(f"{tmp_path}/a\\tb\\nc.png\tred\t")


def test_photographs_are_fitted_as_the_model_was_taught(f2ocl, learned, pictures):
    from avalanche_f2ocl import load_model

    model, name = load_model(learned), "test/red/3.png"
    image = ImageSource(pictures).pixels(name, model.backbone.image_fit)
    assert image.shape == (3, 32, 32)
    [row] = f2ocl("predict", learned, pictures / name, "--json", "--quiet")[1]
    share = float(model.predict_proba(image[None]).max())
    assert abs(row["classes"][0]["probability"] - share) < 1e-4


def test_what_was_learned_may_lie_on_the_hub(f2ocl, learned, pictures, tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    shutil.copy(learned, tmp_path / "folder" / FILE)
    StandIn(monkeypatch, tmp_path / "cache").put("user/name", tmp_path / "folder", "v1")
    code, out, _ = f2ocl("predict", "hf-hub:user/name@v1", pictures / "test" / "red", "--quiet")
    assert code == 0 and out == f2ocl("predict", learned, pictures / "test" / "red", "--quiet")[1]
    assert f2ocl("counts", "hf-hub:user/name@v1", "--json") == f2ocl("counts", learned, "--json")
    more = tmp_path / "more.safetensors"
    assert f2ocl("train", pictures, "--from", "hf-hub:user/name@v1", "--out", more, "--quiet")[0] == 0
    assert sorted(f2ocl("counts", more)[1].splitlines()) == ["blue\t16", "green\t16", "red\t16"]
    code, _, said = f2ocl("predict", "hf-hub:user/name", pictures / "test" / "red")
    assert code == 1 and "no model.safetensors of 'user/name'" in said
