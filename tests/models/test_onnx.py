import json
import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from timm.data import resolve_model_data_config
from timm.models import VisionTransformer

from avalanche_f2ocl import F2OCLModel, ViTNCMModel, export_onnx
from avalanche_f2ocl.backbone.vit import PromptableViT
from tests.helpers import assert_same_state, learned

onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra [onnx]")
pytest.importorskip("onnxscript", reason="needs the extra [onnx]")
pytestmark = pytest.mark.skipif(torch.__version__ < (2, 6), reason="export to ONNX needs torch 2.6 or newer")


@pytest.fixture
def tiny_vit():
    return VisionTransformer(img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=2, num_classes=0)


MODELS = {
    "best, in bfloat16": lambda vit: F2OCLModel.best(vit, prompt_length=2, precision="bfloat16"),
    "distances, normalised images": lambda vit: ViTNCMModel(
        PromptableViT(vit, readout="patch", inputs="normalised"), metric="euclidean"
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_onnx_runtime_predicts_as_the_model_for_any_number_of_images(name, tiny_vit, images, tmp_path):
    model, names = MODELS[name](tiny_vit), ["cat", "dog", "é"]
    if model.backbone.inputs == "normalised":
        images = images.float() / 127.5 - 1
    for part in (slice(0, 6), slice(6, 12)):
        model.learn(images[part], names * 2)
    before = learned(model)
    export_onnx(model, tmp_path / "model.onnx")
    assert_same_state(learned(model), before)
    assert os.listdir(tmp_path) == ["model.onnx"]
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    exact = "float32" if "bfloat16" in name else model.backbone.precision
    model.backbone = PromptableViT(tiny_vit, **(model.backbone.options | {"precision": exact}))
    for count in (1, 5, 12):
        ids, probabilities = session.run(None, {"images": images[:count].numpy()})
        assert ids.tolist() == model.predict(images[:count]).tolist()
        np.testing.assert_allclose(probabilities, model.predict_proba(images[:count]).numpy(), atol=1e-4)
    told = {name: json.loads(text) for name, text in session.get_modelmeta().custom_metadata_map.items()}
    assert told["class_names"] == names and told["class_ids"] == [0, 1, 2]
    mean = resolve_model_data_config(tiny_vit)["mean"]
    preprocessing, floats = told["preprocessing"], model.backbone.inputs == "normalised"
    assert preprocessing["image_size"] == 32 and preprocessing["applied_inside"] is not floats
    assert preprocessing["dtype"] == ("float32" if floats else "uint8") and np.allclose(preprocessing["mean"], mean)
    assert told["backbone"]["sha256"] == model.backbone.checksum


def test_a_file_that_predicts_otherwise_is_not_kept(tiny_vit, images, tmp_path, monkeypatch):
    model, path = ViTNCMModel(tiny_vit), tmp_path / "model.onnx"
    model.learn(images, [0, 1, 2] * 4)
    export_onnx(model, path)
    first = path.read_bytes()
    model.learn(images, [1, 2, 0] * 4)
    other = SimpleNamespace(model=SimpleNamespace(metadata_props={}), save=lambda path: path.write_bytes(first))
    monkeypatch.setattr(torch.onnx, "export", lambda *args, **options: other)
    path.write_text("old")
    with pytest.raises(RuntimeError, match="probabilities differ by .* from the model's"):
        export_onnx(model, path)
    assert os.listdir(tmp_path) == ["model.onnx"] and path.read_text() == "old"


def test_what_is_missing_is_named(tiny_vit, tmp_path, monkeypatch):
    with pytest.raises(RuntimeError, match="nothing has been learned"):
        export_onnx(ViTNCMModel(tiny_vit), tmp_path / "model.onnx")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"needs onnxruntime: pip install 'avalanche-f2ocl\[onnx\]'"):
        export_onnx(ViTNCMModel(tiny_vit), tmp_path / "model.onnx")
    assert not os.listdir(tmp_path)
