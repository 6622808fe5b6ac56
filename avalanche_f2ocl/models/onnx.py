"""The whole prediction as an ONNX file, for programs without Python or torch."""

import json
import os
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from avalanche_f2ocl import __version__
from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.models.base import BaseModel
from avalanche_f2ocl.models.export import export_prediction, frozen_copy

TOLERANCE = 1e-3
"""A file is kept if no probability differs by more than this between torch and ONNX Runtime."""


def export_onnx(model: BaseModel, path: str | Path) -> None:
    """Writes the model's present prediction as an ONNX file, which is kept only if ONNX Runtime predicts the same.

    The file takes ``images``, ``(B, 3, S, S)`` for any B and the S pixels a side of the backbone: uint8 RGB, or, where
    the model has ``inputs="normalised"``, float32. It gives ``class_ids``, ``(B,)`` int64, and ``probabilities``,
    ``(B, C)`` float32, as :meth:`avalanche_f2ocl.models.base.BaseModel.predict` and ``predict_proba``. Normalisation
    is part of the file; how a photograph becomes a square is described in its metadata, which are JSON:

    ``class_ids``, ``class_names``
        ids and names of the columns of ``probabilities``.
    ``preprocessing``
        ``layout``, ``channels``, ``dtype``, ``image_size``, ``fit``, ``crop_pct``, ``interpolation`` and ``fill`` as
        in :class:`avalanche_f2ocl.image_fit.ImageFit`; ``mean`` and ``std``, and whether they are ``applied_inside``.
    ``backbone``
        the backbone's ``name`` and the ``sha256`` of its weights.

    Everything is computed in float32, even if the model's backbone is in bfloat16.

    Args:
        model: a model that has learned something; it stays as it is.
        path: path of the file.

    Raises:
        ImportError: onnx, onnxscript or onnxruntime is not installed.
        RuntimeError: nothing has been learned yet, torch is older than 2.6, or ONNX Runtime predicts something else.
        OSError: the file cannot be written.

    Example:
        >>> from avalanche_f2ocl import F2OCLModel
        >>> model = F2OCLModel("micro_vit", prompt_length=2)
        >>> model.learn(torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8), ["cat", "dog"])
        >>> export_onnx(model, "model.onnx")  # doctest: +SKIP
    """
    _check_packages()
    path = Path(path)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    model = frozen_copy(model, _float32_on_cpu(model.backbone))
    onnx_program = torch.onnx.export(
        export_prediction(model, _examples(model.backbone, 2)),
        dynamo=True,
        verbose=False,
        input_names=["images"],
        output_names=["class_ids", "probabilities"],
        dynamic_shapes={"images": {0: "batch"}},
        custom_translation_table={torch.ops.aten._cdist_forward.default: _euclidean},
    )
    assert onnx_program is not None
    onnx_program.model.metadata_props.update(_metadata(model))
    onnx_program.model.producer_name, onnx_program.model.producer_version = "avalanche_f2ocl", __version__
    try:
        onnx_program.save(unfinished)
        _check_file(unfinished, model)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _check_packages() -> None:
    if torch.__version__ < (2, 6):  # type: ignore[operator]
        raise RuntimeError(f"export to ONNX needs torch 2.6 or newer, this is {torch.__version__}")
    try:
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ImportError(f"export to ONNX needs {error.name}: pip install 'avalanche-f2ocl[onnx]'") from error


def _float32_on_cpu(backbone: PromptableViT) -> PromptableViT:
    options: dict[str, Any] = {**backbone.options, "precision": "float32", "capture": False, "compile": False}
    return PromptableViT(deepcopy(backbone.weights).float().cpu(), **options)


def _examples(backbone: PromptableViT, count: int) -> Tensor:
    """Images of random noise, ``(count, 3, S, S)``."""
    generator = torch.Generator().manual_seed(0)
    shape = count, 3, backbone.image_size, backbone.image_size
    if backbone.inputs == "normalised":
        return torch.randn(shape, generator=generator)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)


def _euclidean(x: Any, y: Any, p: float = 2.0, compute_mode: int | None = None) -> Any:
    """``torch.cdist``, which torch cannot export: ``(B, D)`` and ``(C, D)`` to ``(B, C)``."""
    import onnxscript

    op: Any = onnxscript.opset18
    difference = op.Sub(op.Unsqueeze(x, [1]), op.Unsqueeze(y, [0]))
    return op.ReduceL2(difference, [2], keepdims=0)


def _metadata(model: BaseModel) -> dict[str, str]:
    backbone, ids = model.backbone, model.class_ids.tolist()
    prepare, fit = backbone.prepare, backbone.image_fit
    inside = backbone.inputs != "normalised"
    values: dict[str, Any] = {
        "class_ids": ids,
        "class_names": [model.class_names.get(class_id, str(class_id)) for class_id in ids],
        "preprocessing": {
            "layout": "NCHW",
            "channels": "RGB",
            "dtype": "uint8" if inside else "float32",
            "image_size": fit.image_size,
            "fit": fit.fit,
            "crop_pct": fit.crop_pct,
            "interpolation": fit.interpolation,
            "fill": fit.fill,
            "mean": prepare.mean.flatten().tolist(),
            "std": prepare.std.flatten().tolist(),
            "applied_inside": inside,
        },
        "backbone": {"name": backbone.name, "sha256": backbone.checksum},
    }
    return {name: json.dumps(value) for name, value in values.items()}


def _check_file(path: Path, model: BaseModel) -> None:
    """Raises ``RuntimeError`` unless ONNX Runtime predicts what the model does, for one image and for several."""
    from onnxruntime import InferenceSession

    session = InferenceSession(path, providers=["CPUExecutionProvider"])
    for count in (1, 3):
        images = _examples(model.backbone, count)
        _, shares = session.run(None, {"images": images.numpy()})
        difference = float(np.abs(shares - model.predict_proba(images).numpy()).max())
        if not difference <= TOLERANCE:
            raise RuntimeError(f"the ONNX file's probabilities differ by {difference:.2g} from the model's")
