"""Devices and precisions."""

from copy import deepcopy

import pytest
import torch

from avalanche_f2ocl import F2OCLModel, F2OCLStrategy, ViTNCM
from avalanche_f2ocl.backbone import devices
from avalanche_f2ocl.backbone.devices import default_device, working_dtype


@pytest.mark.parametrize("cuda", [True, False])
def test_cuda_is_the_default_where_it_is(monkeypatch, cuda):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    assert default_device().type == ("cuda" if cuda else "cpu")
    assert default_device("meta").type == "meta"


@pytest.mark.parametrize("amx", [True, False, None])
@pytest.mark.parametrize("avx512", [True, False, None])
@pytest.mark.parametrize("width", [devices.BFLOAT16_WIDTH - 64, devices.BFLOAT16_WIDTH])
def test_auto_is_bfloat16_where_it_is_faster(monkeypatch, amx, avx512, width):
    for name, there in (("_is_amx_tile_supported", amx), ("_is_avx512_bf16_supported", avx512)):
        if there is None:  # as in torch 2.4
            monkeypatch.delattr(torch.cpu, name, raising=False)
        else:
            monkeypatch.setattr(torch.cpu, name, lambda there=there: there, raising=False)
    fast = torch.bfloat16 if (amx or avx512) and width == devices.BFLOAT16_WIDTH else torch.float32
    assert working_dtype("auto", width, "cpu") == fast
    assert working_dtype("auto", width, "cuda") == torch.bfloat16
    assert working_dtype("auto", width, "mps") == torch.float32
    for device in ("cpu", "cuda"):
        assert working_dtype("float32", width, device) == torch.float32
        assert working_dtype("bfloat16", width, device) == torch.bfloat16


@pytest.mark.parametrize("make", [F2OCLStrategy, ViTNCM])
def test_a_strategy_asks_for_the_device_it_runs_on(monkeypatch, vit, make):
    asked = []
    monkeypatch.setattr(
        "avalanche_f2ocl.backbone.vit.working_dtype", lambda *args: asked.append(args) or torch.float32
    )
    make(backbone=vit, evaluator=None, device="cpu")
    assert asked == [("auto", 128, torch.device("cpu"))]


def test_a_model_is_where_it_is_said_to_be(vit):
    assert F2OCLModel(vit).device.type == "cpu"
    assert F2OCLModel(deepcopy(vit), device="meta").device.type == "meta"
