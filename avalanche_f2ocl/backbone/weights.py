"""Frozen ViTs from timm, from a local file, or from the package's assets."""

import difflib
from importlib.resources import as_file, files
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import timm
import torch
from safetensors import SafetensorError
from timm.models import VisionTransformer, eva, vision_transformer
from torch import Tensor, nn

from avalanche_f2ocl.arguments import check_positive_int
from avalanche_f2ocl.backbone.families import AnyViT, check_vit

MICRO_VIT = "micro_vit"
"""Name of the small bundled ViT (32 px), made for offline use and tests, not for reported results."""


def load_vit(
    backbone: str | nn.Module,
    weights: str | Path | None = None,
    image_size: int | None = None,
) -> AnyViT:
    """Loads a ViT of timm's with its weights.

    Args:
        backbone: a timm model name with its pretrained tag, such as ``"vit_base_patch16_224.augreg_in21k"``
            (without a tag, timm chooses the checkpoint); ``"micro_vit"``; or a ``VisionTransformer`` or ``Eva``, which
            is used as it is.
        weights: local checkpoint (safetensors, or a state dict readable with ``weights_only=True``).
            Without it, timm downloads the weights of the tag.
        image_size: side of the images in pixels, for which position embeddings are resampled; by default the model's
            own.

    Raises:
        TypeError: ``backbone`` is neither a name nor of timm's classes ``VisionTransformer`` and ``Eva``, or it names
            a model of another class (raised before anything is downloaded).
        ValueError: the name or tag is unknown, the model does not take this size, its images are not square or do not
            have three channels, or the weights do not match; the message names the problem.
        FileNotFoundError: ``weights`` is no file.
        OSError: the download failed.

    Example:
        >>> load_vit("micro_vit").embed_dim
        128
    """
    if image_size is not None:
        check_positive_int("image_size", image_size)
    if isinstance(backbone, nn.Module):
        return _check_own(backbone, weights, image_size)
    if not isinstance(backbone, str):
        raise TypeError(
            f"backbone={backbone!r}: must be a timm model name, 'micro_vit' or a timm VisionTransformer or Eva, "
            f"is {type(backbone).__name__}"
        )
    if weights is not None and not Path(weights).is_file():
        raise FileNotFoundError(f"weights={str(weights)!r}: no such file")
    size: dict[str, Any] = {} if image_size is None else {"img_size": image_size}
    if backbone == MICRO_VIT:
        return _micro_vit(weights, size).float()
    _check_name(backbone)
    check_vit(_without_weights(backbone), backbone, image_size)  # before a download
    if weights is not None:
        vit = timm.create_model(backbone, num_classes=0, **size)
        _load_checkpoint(vit, weights)
        return vit.float()
    try:
        return timm.create_model(backbone, pretrained=True, num_classes=0, **size).float()
    except OSError as error:
        raise OSError(
            f"the weights of {backbone!r} could not be downloaded from huggingface.co ({type(error).__name__}). "
            "Without a network, give a local checkpoint (weights=..., --weights FILE), or use the bundled 'micro_vit'"
        ) from error


def _without_weights(name: str) -> nn.Module:
    try:
        with torch.device("meta"):  # takes no memory
            return timm.create_model(name, num_classes=0)
    except RuntimeError:  # models of older timm versions compute with values while they are built
        return timm.create_model(name, num_classes=0)


def _check_own(vit: nn.Module, weights: str | Path | None, image_size: int | None) -> AnyViT:
    own = check_vit(vit, type(vit).__name__)
    if weights is not None:
        raise ValueError("weights=... goes with a backbone's name; a module brings its own")
    own_size = own.patch_embed.img_size
    if image_size is not None and own_size != (image_size, image_size):
        raise ValueError(f"image_size={image_size}: the given backbone takes {own_size}; build it for that size")
    return own


def _check_name(name: str) -> None:
    architecture, _, tag = name.partition(".")
    if not timm.is_model(architecture):
        usable = [*timm.list_models(module="vision_transformer"), *timm.list_models(module="eva")]
        near = difflib.get_close_matches(architecture, usable, n=3, cutoff=0.5)
        hint = f"; did you mean {', '.join(near)}?" if near else "."
        raise ValueError(f"backbone={name!r}: timm knows no model {architecture!r}{hint} 'micro_vit' is bundled")
    tags = _tags(architecture)
    if tag and tag not in tags:
        raise ValueError(f"backbone={name!r}: timm knows no such tag; {architecture} has {', '.join(tags)}")


def _tags(architecture: str) -> list[str]:
    return [full.partition(".")[2] for full in timm.list_pretrained(architecture + ".*")]


def vit_from_state(name: str, state: dict[str, Tensor], image_size: int) -> AnyViT:
    """A named ViT with the tensors of a ``state_dict``.

    Raises:
        ValueError: the name is unknown, or the tensors do not match.
    """
    if name == MICRO_VIT:
        vit = _empty_micro_vit({"img_size": image_size})
    else:
        architecture, _, tag = name.partition(".")
        # Some have no weights that timm knows, and a tag of their own in their configuration.
        known = tag in _tags(architecture) or not timm.is_model(architecture)
        name = name if known else architecture
        _check_name(name)
        vit = check_vit(timm.create_model(name, num_classes=0, img_size=image_size), name)
    _load_state(vit, state, name)
    return vit


def _empty_micro_vit(size: dict) -> VisionTransformer:
    vit = VisionTransformer(
        **{"img_size": 32, **size}, patch_size=4, embed_dim=128, depth=6, num_heads=4, mlp_ratio=3, num_classes=0
    )
    mean = std = (0.5,) * 3
    cfg: Any = dict(
        architecture=MICRO_VIT, input_size=(3, 32, 32), mean=mean, std=std, interpolation="bicubic", crop_pct=1.0
    )
    vit.pretrained_cfg = cfg
    return vit


def _micro_vit(weights: str | Path | None, size: dict) -> AnyViT:
    vit = _empty_micro_vit(size)
    if weights is not None:
        _load_checkpoint(vit, weights)
    else:
        with as_file(files("avalanche_f2ocl") / "assets" / "micro_vit.safetensors") as path:
            _load_checkpoint(vit, path)
    return vit


def _load_checkpoint(vit: AnyViT, path: str | Path) -> None:
    """Loads all of the backbone's tensors or none; a classification head in the file is left out."""
    try:
        state = timm.models.load_state_dict(str(path), weights_only=True)
    except (SafetensorError, UnpicklingError, RuntimeError, ValueError, EOFError, KeyError) as error:
        raise ValueError(f"weights={str(path)!r} are damaged or no checkpoint ({type(error).__name__})") from error
    family = eva if isinstance(vit, eva.Eva) else vision_transformer
    state = family.checkpoint_filter_fn(state, vit)
    state = {name: tensor for name, tensor in state.items() if not name.startswith(("head.", "head_dist."))}
    _load_state(vit, state, str(path))


def _load_state(vit: AnyViT, state: dict[str, Tensor], source: str) -> None:
    own = vit.state_dict()
    problems = {
        "missing": [name for name in own if name not in state],
        "unexpected": [name for name in state if name not in own],
        "of another shape": [name for name in own if name in state and own[name].shape != state[name].shape],
    }
    if any(problems.values()):
        listed = "; ".join(f"{kind}: {_shorten(names)}" for kind, names in problems.items() if names)
        raise ValueError(f"weights={source!r} do not match the backbone. {listed}")
    vit.load_state_dict({name: tensor.to(torch.float32) for name, tensor in state.items()})


def _shorten(names: list[str], most: int = 8) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
