from pathlib import Path

import pytest
import timm
import torch
from safetensors.torch import save_file
from timm.models import VisionTransformer

from avalanche_f2ocl.backbone import weights as loading
from avalanche_f2ocl.backbone.weights import load_vit

TINY = "vit_tiny_patch16_224"


@pytest.fixture(scope="module")
def tiny():
    torch.manual_seed(0)
    return timm.create_model(TINY, num_classes=7)


@pytest.fixture
def tiny_file(tiny, tmp_path):
    path = tmp_path / "tiny.safetensors"
    save_file({name: t.half().contiguous() for name, t in tiny.state_dict().items()}, path)
    return path


def test_the_bundled_vit_is_trained(vit):
    """Its position embeddings are smooth: neighbours are alike, which an untrained network's are not."""
    grid = vit.pos_embed[0, 1:].view(8, 8, -1)
    near = torch.cosine_similarity(grid[:, 1:], grid[:, :-1], dim=-1).mean()
    far = torch.cosine_similarity(grid[:4], grid[4:], dim=-1).mean()
    assert near > 0.3 and near > far + 0.2


def test_local_weights_in_half_precision_load_whole_without_their_head(tiny, tiny_file):
    loaded = load_vit(TINY, weights=tiny_file)
    state = loaded.state_dict()
    assert not any(name.startswith("head.") for name in state)
    for name, tensor in state.items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, tiny.state_dict()[name].half().float()), name


def test_a_state_dict_saved_by_torch_loads_too(tiny, tmp_path):
    torch.save(tiny.state_dict(), tmp_path / "tiny.pth")
    assert torch.equal(load_vit(TINY, tmp_path / "tiny.pth").cls_token, tiny.cls_token)


@pytest.mark.parametrize("kind", ["safetensors", "pth"])
def test_damaged_weights_are_named_and_no_code_is_run(kind, tiny, tiny_file, tmp_path):
    if kind == "pth":
        tiny_file = tmp_path / "tiny.pth"
        torch.save(tiny.state_dict(), tiny_file)
    good = tiny_file.read_bytes()
    for spoilt in (good[: len(good) // 2], good[:20], b"", b"\xff" * 64 + good[64:]):
        bad = tmp_path / f"bad.{kind}"
        bad.write_bytes(spoilt)
        with pytest.raises(ValueError, match=f"bad.{kind}' are damaged or no checkpoint"):
            load_vit(TINY, bad)


class Bomb:
    def __reduce__(self):
        return (Path.touch, (Path("exploded"),))


def test_a_pickle_that_would_run_code_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"cls_token": Bomb()}, "bomb.pth")
    with pytest.raises(ValueError, match="bomb.pth' are damaged or no checkpoint"):
        load_vit(TINY, "bomb.pth")
    assert not Path("exploded").exists()


def test_another_image_size_resamples_position_embeddings(tiny_file):
    small = load_vit(TINY, tiny_file, image_size=112)
    assert small.patch_embed.img_size == (112, 112) and small.pos_embed.shape == (1, 50, 192)
    assert load_vit("micro_vit", image_size=16).pos_embed.shape == (1, 17, 128)


def test_a_module_is_used_as_it_is(vit):
    assert load_vit(vit) is vit
    with pytest.raises(ValueError, match=r"image_size=64.*\(32, 32\)"):
        load_vit(vit, image_size=64)
    with pytest.raises(ValueError, match="weights"):
        load_vit(vit, weights="some.safetensors")


@pytest.mark.parametrize(
    "name, error, message",
    [
        ("vit_bas_patch16_224", ValueError, "knows no model 'vit_bas_patch16_224'; did you mean vit_base_patch16_224"),
        ("vit_base_patch16_224.augreg", ValueError, "no such tag.*augreg_in21k.*dino"),
        ("resnet18", TypeError, "VisionTransformer or Eva, is ResNet"),
        (3, TypeError, "backbone=3.*int"),
        (torch.nn.Linear(2, 2), TypeError, "VisionTransformer or Eva, is Linear"),
    ],
    ids=str,
)
def test_unknown_backbones(name, error, message, tiny_file):
    weights = tiny_file if isinstance(name, str) else None
    with pytest.raises(error, match=message):
        load_vit(name, weights=weights)


@pytest.mark.parametrize("name", ["beit_base_patch16_224.in22k_ft_in22k", "resnet18", "vit_relpos_small_patch16_224"])
@pytest.mark.parametrize("image_size", [None, 64])
def test_other_families_are_refused_before_a_download(name, image_size, monkeypatch):
    def download(*args, **kwargs):
        raise AssertionError("downloaded")

    monkeypatch.setattr("timm.models._builder.load_pretrained", download)
    with pytest.raises(TypeError, match=f"backbone='{name}': must be of timm's classes VisionTransformer or Eva"):
        load_vit(name, image_size=image_size)
    with pytest.raises(AssertionError, match="downloaded"):
        load_vit("vit_tiny_patch16_224")


def test_an_image_size_that_patches_do_not_divide_is_refused():
    with pytest.raises(ValueError, match="image_size=50: must be a multiple of the backbone's patch size, 16"):
        load_vit(TINY, image_size=50)


def test_other_images_than_square_ones_in_colour_are_refused():
    with pytest.raises(ValueError, match=r"takes images of \(32, 64\); allowed are square ones"):
        load_vit(VisionTransformer(img_size=(32, 64), patch_size=8, embed_dim=8, depth=1, num_heads=2))
    with pytest.raises(ValueError, match="takes 1 channels; allowed are 3"):
        load_vit(VisionTransformer(img_size=32, patch_size=8, embed_dim=8, depth=1, num_heads=2, in_chans=1))


def test_weights_that_do_not_match_are_named(tiny, tmp_path):
    state = {name: t.contiguous() for name, t in tiny.state_dict().items()}
    del state["blocks.3.attn.qkv.bias"]
    state["blocks.12.norm1.weight"] = torch.zeros(192)
    state["norm.bias"] = torch.zeros(3)
    save_file(state, tmp_path / "bad.safetensors")
    with pytest.raises(ValueError) as error:
        load_vit(TINY, weights=tmp_path / "bad.safetensors")
    assert "missing: blocks.3.attn.qkv.bias;" in str(error.value)
    assert "unexpected: blocks.12.norm1.weight;" in str(error.value)
    assert "of another shape: norm.bias" in str(error.value)


def test_missing_file():
    with pytest.raises(FileNotFoundError, match="weights='nowhere.safetensors'"):
        load_vit("micro_vit", weights="nowhere.safetensors")


@pytest.mark.parametrize("size, error", [(0, ValueError), ("224", TypeError)])
def test_image_size(size, error):
    with pytest.raises(error, match="image_size"):
        load_vit("micro_vit", image_size=size)


def test_a_failed_download_says_what_helps(monkeypatch):
    create = loading.timm.create_model

    def offline(*args, pretrained=False, **kwargs):
        if pretrained:
            raise FileNotFoundError("no connection")
        return create(*args, **kwargs)

    monkeypatch.setattr(loading.timm, "create_model", offline)
    with pytest.raises(OSError, match="could not be downloaded.*weights=.*micro_vit"):
        load_vit("vit_base_patch16_224.augreg_in21k")


def test_the_default_backbone_exists_in_timm():
    assert timm.models.is_model_pretrained("vit_base_patch16_224.augreg_in21k")
    vit = timm.create_model("vit_base_patch16_224.augreg_in21k", num_classes=0)
    assert isinstance(vit, VisionTransformer) and vit.pretrained_cfg["mean"] == (0.5,) * 3
