"""The examples as a user runs them, with few images."""

import json
import re
import runpy
from pathlib import Path

import pytest
import torch

from avalanche_f2ocl import class_incremental_stream, datasets

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def run(monkeypatch, tmp_path, capfd):
    """Runs an example in this process, as an import of Avalanche takes seconds; returns stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    data = datasets.load("digits", test_per_class=12)
    parts = {"train": data.train, "test": data.test}
    digits = {split: (part.images, torch.tensor(part.targets)) for split, part in parts.items()}, data.class_names
    monkeypatch.setattr(datasets.loading, "_digits", lambda: digits)

    def run(name, *options):
        monkeypatch.setattr("sys.argv", [name, *map(str, options)])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capfd.readouterr()

    return run


def rows(output):
    """Table rows by method: A_n, A_n_samples, F_n, ..."""
    found = re.findall(r"^\| ([\w-]+) \| ([\d.|\- ]+) \|$", output, re.MULTILINE)
    return {name: [None if v == "-" else float(v) for v in cells.split(" | ")] for name, cells in found}


@pytest.fixture
def small_zip(tmp_path):
    """Two classes of plain coloured images."""
    from zipfile import ZipFile

    from PIL import Image

    path = tmp_path / "small.zip"
    with ZipFile(path, "w") as archive:
        for split, count in (("train", 12), ("test", 6)):
            for shade, name in ((10, "dark"), (200, "light"), (100, "middle")):
                for i in range(count):
                    Image.new("RGB", (8, 8), (shade + i, shade, shade - i)).save(tmp_path / "image.png")
                    archive.write(tmp_path / "image.png", f"{split}/{name}/{i}.png")
    return path


def test_quickstart(run, tmp_path):
    table = rows(printed := run("quickstart.py", "--train-per-class", 40, "--figure", "figure.png").out)
    assert 65 < table["ViT-NCM"][0] < 80 and 65 < table["F2OCL"][0] < 80 and table["recommended"][0] > 90
    gain = table["recommended"][0] - table["ViT-NCM"][0]
    assert f"recommended settings {gain:+.1f} points" in printed
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_online_cifar100_on_a_zip(run, small_zip):
    options = ["--data", small_zip, "--backbone", "micro_vit", "--groups", "3", "--passes", "2"]
    out, err = run("online_cifar100.py", *options, "--train-per-class", "10", "--test-per-class", "5")
    table = rows(out)
    assert set(table) == {"f2ocl", "vit-ncm", "er", "lwf"}
    assert table["f2ocl"][3] == table["vit-ncm"][0] and table["er"][3] is None
    assert err.count("60/60") >= 4


def test_online_cifar100_says_what_helps(small_zip, run, capfd):
    wrong = {
        "--methods l2p: allowed are f2ocl,vit-ncm,er,lwf": ["--methods", "l2p"],
        "no such path": ["--data", "nowhere.zip"],
        "nowhere.safetensors": ["--data", small_zip, "--groups", "3", "--weights", "nowhere.safetensors"],
        "at most 3 groups": ["--data", small_zip],
    }
    for message, options in wrong.items():
        with pytest.raises(SystemExit) as left:
            run("online_cifar100.py", *options)
        said = f"{left.value.code}{capfd.readouterr().err}"
        assert left.value.code != 0 and message in said and "Traceback" not in said
        if "--methods" not in options:
            assert "--data FOLDER_OR_ZIP" in said and "--backbone micro_vit" in said


def test_compare_with_avalanche(run):
    table = rows(run("compare_with_avalanche.py", "--train-per-class", 20).out)
    assert table["F2OCL"][0] > table["Naive"][0] + 20 and table["Naive"][3] is None


def test_a_long_run_is_announced_with_what_shortens_it(small_zip, monkeypatch, capsys):
    example = runpy.run_path(str(EXAMPLES / "online_cifar100.py"))
    options = ["--data", str(small_zip), "--backbone", "micro_vit", "--groups", "3", "--methods", "vit-ncm"]
    monkeypatch.setattr("sys.argv", ["online_cifar100.py", *options])
    for limit, announced in ((0, True), (600, False)):
        monkeypatch.setitem(example["main"].__globals__, "LONG", limit)
        example["main"]()
        printed = capsys.readouterr().out
        assert ("this will take about" in printed and "--train-per-class" in printed) == announced
        assert printed.index("| vit-ncm |") > printed.find("this will take")


def test_own_images(run, small_zip, tmp_path):
    printed = run("own_images.py", small_zip, "--backbone", "micro_vit").out
    assert rows(printed)["F2OCL"][0] > 90  # plain colours
    assert (tmp_path / "learned.safetensors").exists()


def test_own_backbone(run):
    assert "my_vit: 10 classes, 96 numbers an image" in run("own_backbone.py").out


def test_blurry_stream(run, tmp_path):
    printed = run("blurry_stream.py", "--train-per-class", 20).out
    last = dict(re.findall(r"^(.*): A_auc .* A_last ([\d.]+) %$", printed, re.MULTILINE))
    assert float(last["F2OCL, recommended"]) > 85 and 60 < float(last["frozen, class means"]) < 80
    assert (tmp_path / "runs" / "blurry.png").stat().st_size > 10_000


def test_resume(run):
    first = run("resume.py", "--train-per-class", 10).out
    again = run("resume.py", "--train-per-class", 10).out
    assert "knows 10 mini-batches" in again and again.endswith(first) and first.count("A_n") == 5


def test_serve(run, tmp_path):
    printed = run("serve.py", "--images", 200).out
    asked, right = re.search(r"^(\d+) images .* ([\d.]+) % rightly", printed).groups()
    assert asked == "190" and float(right) > 60 and (tmp_path / "served.safetensors").exists()


def test_the_notebook(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    few = class_incremental_stream("digits", groups=2, train_per_class=5, test_per_class=4)
    monkeypatch.setattr("avalanche_f2ocl.class_incremental_stream", lambda *args, **options: few)
    names = {"__name__": "notebook"}
    for cell in json.loads((EXAMPLES / "tour.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), "tour.ipynb", "exec"), names)
    printed = capsys.readouterr().out
    assert set(rows(printed)) == {"ViT-NCM", "F2OCL", "recommended"} and "none of 25 samples is kept" in printed
    assert (tmp_path / "runs" / "forgetting.png").exists()
