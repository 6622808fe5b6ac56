"""Devices and precisions."""

from copy import deepcopy

import pytest
import torch

from avalanche_f2ocl import F2OCLModel, F2OCLStrategy, ViTNCM
from avalanche_f2ocl.backbone import devices
from avalanche_f2ocl.backbone.devices import default_device, numbered, working_dtype


@pytest.mark.parametrize("cuda", [True, False])
def test_cuda_is_the_default_where_it_is(monkeypatch, cuda):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    # With its number: tensors there have one, and a model that is there is not to be moved there again.
    assert default_device() == torch.device("cuda:1" if cuda else "cpu")
    assert numbered("cuda") == numbered("cuda:1") == torch.device("cuda:1") and numbered("cuda:0").index == 0
    assert default_device("meta") == torch.device("meta")


def test_a_model_that_is_on_the_current_device_is_not_moved_there(monkeypatch, vit):
    model = F2OCLModel(vit)
    moved = []
    monkeypatch.setattr("avalanche_f2ocl.models.base.numbered", lambda device: torch.device("cpu"))
    monkeypatch.setattr(torch.nn.Module, "to", lambda *args, **kwargs: moved.append(args))
    assert model.to("cuda") is model and not moved


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
    assert working_dtype("auto", width, "mps") == torch.float32
    for device in ("cpu", "cuda"):
        assert working_dtype("float32", width, device) == torch.float32
        assert working_dtype("bfloat16", width, device) == torch.bfloat16


@pytest.mark.parametrize("capability, fast", [((7, 0), False), ((7, 5), False), ((8, 0), True), ((9, 0), True)])
def test_auto_is_bfloat16_on_cuda_devices_that_multiply_it(monkeypatch, capability, fast):
    """By the device that is asked for, not by the current one; V100 and T4 would emulate it."""
    of_device = {torch.device("cuda:1"): capability, torch.device("cuda"): (9, 0)}
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: of_device[device])
    assert working_dtype("auto", 128, "cuda:1") == (torch.bfloat16 if fast else torch.float32)
    assert working_dtype("auto", 128, "cuda") == working_dtype("bfloat16", 128, "cuda:1") == torch.bfloat16


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
