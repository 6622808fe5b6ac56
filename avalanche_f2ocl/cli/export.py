"""``f2ocl export``: the prediction as an ONNX file."""

import argparse
from typing import Any

from avalanche_f2ocl.cli.messages import one_line
from avalanche_f2ocl.cli.output import check_place
from avalanche_f2ocl.models.loading import load_model
from avalanche_f2ocl.models.onnx import export_onnx


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Writes the file, checks it in ONNX Runtime, and returns a description of it.

    Raises:
        ImportError, OSError, RuntimeError: the file cannot be made, see :func:`avalanche_f2ocl.export_onnx`.
        ValueError: the file's name does not end in .onnx.
    """
    if args.out.suffix != ".onnx":
        raise ValueError(f"{str(args.out)!r}: must end in .onnx")
    check_place(args.out, replace=args.overwrite, go_on=False)
    model = load_model(args.file, weights=args.weights, device="cpu", precision="float32")
    export_onnx(model, args.out)
    return {
        "file": str(args.out),
        "bytes": args.out.stat().st_size,
        "image_size": model.backbone.image_size,
        "classes": len(model.class_ids),
    }


def text(result: dict[str, Any]) -> str:
    """The result as readable text."""
    side = result["image_size"]
    return one_line(
        f"exported {result['classes']} classes, images of {side} x {side} px, {result['bytes'] / 1e6:.1f} MB; "
        f"ONNX Runtime predicts the same. Saved: {result['file']}"
    )
