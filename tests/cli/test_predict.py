import shutil


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


def test_what_is_no_image(f2ocl, learned, tmp_path):
    (tmp_path / "a.png").write_bytes(b"damaged")
    (tmp_path / "notes.txt").write_text("no image")
    (tmp_path / "empty").mkdir()
    for name, said in (
        ("a.png", "a.png is no image"),
        ("notes.txt", "neither a folder nor a zip"),
        ("empty", "has no images in it"),
        ("nowhere.png", "no such folder or zip"),
    ):
        code, out, err = f2ocl("predict", learned, tmp_path / name, "--quiet")
        assert code == 1 and not out and said in err and err.count("\n") == 1
