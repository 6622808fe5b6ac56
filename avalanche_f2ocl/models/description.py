"""The description of a saved file."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor


def describe(tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> dict[str, Any]:
    """Describes a file in JSON values; no model is loaded.

    Args:
        tensors, values: contents of the file, see :func:`avalanche_f2ocl.models.model_file.read_model_file`.

    Returns:
        ``"strategy"``, ``"options"``, ``"needs"`` (options that are a user's own), ``"resolved"`` (decisions of the
        machine), ``"backbone"`` (name, image_size, sha256, in_file), ``"classes"`` (for each class its id, its name or
        None, and its number of images or None, in order of appearance) and ``"classes_left_out"``.

    Example:
        >>> backbone = {"name": "micro_vit", "image_size": 32, "sha256": "ab12"}
        >>> values = {"strategy": "ViTNCM", "options": {}, "backbone": backbone, "class_ids": [7]}
        >>> describe({}, values | {"classes_left_out": 0})["classes"]
        [{'id': 7, 'name': None, 'images': None}]
    """
    names = dict(values.get("class_names", []))
    counts = tensors["model.head.counts"].tolist() if "model.head.counts" in tensors else None
    return {
        "strategy": values["strategy"],
        "backbone": {**values["backbone"], "in_file": any(name.startswith("backbone.") for name in tensors)},
        "classes": [
            {"id": class_id, "name": names.get(class_id), "images": counts[row] if counts else None}
            for row, class_id in enumerate(values["class_ids"])
        ],
        "classes_left_out": values["classes_left_out"],
        "resolved": values.get("resolved", {}),
        "options": values["options"],
        "needs": values.get("needs", {}),
    }
