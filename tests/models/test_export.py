import subprocess
import sys
from copy import deepcopy

import pytest
import torch

from avalanche_f2ocl import F2OCLModel
from avalanche_f2ocl.models.export import export_prediction
from tests.models.test_saving import MODELS


@pytest.mark.parametrize("name", MODELS)
def test_equals_eager_for_any_number_of_images(name, vit, images):
    model = MODELS[name](vit)
    model.learn(images, [4, -3, 900] * 4)
    program = export_prediction(model, images[:1]).module()
    for count in (1, 5, 12):
        ids, probabilities = program(images[:count])
        assert torch.equal(ids, model.predict(images[:count]))
        torch.testing.assert_close(probabilities, model.predict_proba(images[:count]))


def test_the_file_needs_neither_this_package_nor_timm(model, images, labels, tmp_path):
    model.learn(images, labels)
    small = torch.nn.functional.interpolate(images.float(), 20).byte()
    torch.export.save(export_prediction(model, small), tmp_path / "prediction.pt2")
    torch.save((small, *(model.predict(small), model.predict_proba(small))), tmp_path / "expected.pt")
    code = (
        "import sys, torch; images, ids, shares = torch.load('expected.pt'); "
        "got = torch.export.load('prediction.pt2').module()(images); "
        "assert torch.equal(got[0], ids) and torch.allclose(got[1], shares, atol=1e-6); "
        "sys.exit('timm' in sys.modules or 'avalanche_f2ocl' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, timeout=300).returncode == 0


def test_later_learning_is_not_in_it(model, images):
    model.learn(images[:4], [0, 1, 0, 1])
    program = export_prediction(model, images).module()
    before = program(images)
    model.learn(images[4:8], [1, 0, 2, 2])
    after = program(images)
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


def test_not_before_anything_is_learned(vit, images):
    with pytest.raises(RuntimeError, match="nothing has been learned"):
        export_prediction(F2OCLModel(vit), images)


@pytest.mark.skipif(not hasattr(torch.compiler, "is_exporting"), reason="older torch does not export compiled modules")
def test_a_compiled_model_is_exported(vit, images, labels, monkeypatch):
    compile_module = torch.nn.Module.compile
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self: compile_module(self, backend="eager"))
    model = F2OCLModel(deepcopy(vit), prompt_length=2, compile=True)
    model.learn(images, labels)
    ids, _ = export_prediction(model, images[:2]).module()(images)
    assert torch.equal(ids, model.predict(images))
