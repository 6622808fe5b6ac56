import runpy
import sys
from pathlib import Path

import pytest
import torch
from PIL import Image

from avalanche_f2ocl.cli.main import main

pytest.importorskip("onnxruntime", reason="needs the extra [onnx]")
pytest.importorskip("onnxscript", reason="needs the extra [onnx]")
pytestmark = pytest.mark.skipif(torch.__version__ < (2, 6), reason="export to ONNX needs torch 2.6 or newer")


def test_a_program_without_torch_predicts_the_same_from_the_same_files(f2ocl, pictures, tmp_path, capsys):
    photographs = [tmp_path / name for name in ("wide.png", "high.png", "square.png")]
    for path, size in zip(photographs, ((75, 50), (41, 90), (50, 50)), strict=True):
        with Image.open(pictures / "test" / "red" / "3.png") as image:
            image.resize(size).save(path)
    taught = tmp_path / "taught.safetensors"
    command = ["train", pictures, "--out", taught, "--backbone", "micro_vit", "--method", "vit-ncm", "--quiet"]
    assert f2ocl(*command, "--fit", "crop", "--workers", 0)[0] == 0
    code, result, _ = f2ocl("export", taught, tmp_path / "model.onnx", "--json")
    assert code == 0 and result["classes"] == 3 and result["image_size"] == 32
    assert result["bytes"] == (tmp_path / "model.onnx").stat().st_size
    _, rows, _ = f2ocl("predict", taught, *photographs, "--json", "--quiet", "--workers", 0)
    example = runpy.run_path(Path(__file__).parents[2] / "examples" / "predict_onnx.py")
    example["main"](str(tmp_path / "model.onnx"), *map(str, photographs))
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[:2] for line in lines] == [[row["image"], row["classes"][0]["class"]] for row in rows]
    for line, row in zip(lines, rows, strict=True):
        assert abs(float(line[2]) - row["classes"][0]["probability"]) < 2e-3


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("model.pt", "must end in .onnx"),
        ("nowhere/model.onnx", "there is no folder"),
        ("there.onnx", "exists already; --overwrite replaces it"),
    ],
)
def test_places_that_cannot_be_written(f2ocl, learned, tmp_path, out, said):
    (tmp_path / "there.onnx").touch()
    code, _, err = f2ocl("export", learned, tmp_path / out)
    assert code == 1 and said in err and err.count("\n") == 1


def test_a_missing_package_is_named_in_one_line(learned, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert main(["export", str(learned), str(tmp_path / "model.onnx")]) == 1
    assert "pip install 'avalanche-f2ocl[onnx]'" in capsys.readouterr().err
