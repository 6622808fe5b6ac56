"""The model card of a saved file: what it has learned, on which backbone, and how to load it."""

import json
import re
from collections.abc import Mapping
from typing import Any

from huggingface_hub import ModelCard, ModelCardData

_TAGS = ["avalanche_f2ocl", "class-incremental-learning", "continual-learning", "online-learning", "rehearsal-free"]
_PAPER = "https://arxiv.org/abs/2510.00467"
_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#~&])")
MOST_CLASSES = 1000
"""Largest number of classes that a card lists."""


def model_card(description: Mapping[str, Any], repo_id: str = "user/name", license: str | None = None) -> ModelCard:
    """Makes the model card, as the Hugging Face Hub shows it.

    Args:
        description: description of the file, see :func:`avalanche_f2ocl.models.description.describe`.
        repo_id: id of the repository that holds the file.
        license: an identifier of the Hub's, such as ``"mit"``; by default no licence is stated.

    Example:
        >>> from avalanche_f2ocl.models.description import describe
        >>> backbone = {"name": "micro_vit", "image_size": 32, "sha256": "ab12"}
        >>> values = {"strategy": "ViTNCM", "options": {}, "backbone": backbone, "class_ids": [7]}
        >>> model_card(describe({}, values | {"classes_left_out": 0})).text.splitlines()[1]
        '# Image classifier of 1 class'
    """
    data = ModelCardData(
        library_name="avalanche_f2ocl", pipeline_tag="image-classification", tags=_TAGS, license=license
    )
    body = "\n\n".join(_sections(description, repo_id, license))
    return ModelCard(f"---\n{data.to_yaml()}\n---\n\n{body}\n")


def _sections(description: Mapping[str, Any], repo_id: str, license: str | None) -> list[str]:
    backbone, classes, options = description["backbone"], description["classes"], description["options"]
    images = [c["images"] for c in classes if c["images"] is not None]
    left_out = description["classes_left_out"]
    rare = f"; {left_out} rare {_classes(left_out)} {'was' if left_out == 1 else 'were'} left out" if left_out else ""
    facts = {
        "method": f"`{description['strategy']}`, head `{options.get('head')}` on `{options.get('head_features')}`",
        "classes": f"{len(classes)}{rare}",
        "images learned": f"{sum(images)}, {min(images)} to {max(images)} of a class" if images else "none",
        "backbone": f"`{backbone['name']}` at {backbone['image_size']} pixels, frozen",
        "backbone's weights": (
            "in the file" if backbone["in_file"] else "not in the file, found by the backbone's name"
        )
        + f"; SHA-256 `{backbone['sha256']}`",
        "licence": ("none is stated" if license is None else f"`{license}`") + "; the backbone has its own",
    }
    needs = [f"`{option}={name}`" for option, name in description["needs"].items()]
    return [
        f"# Image classifier of {len(classes)} {_classes(len(classes))}",
        "Its classes were learned online with `avalanche_f2ocl`, from images in small mini-batches; none of the images "
        f"is in the file ([paper]({_PAPER})). It can learn more classes without them.",
        _table(("", ""), [(name, value) for name, value in facts.items()]),
        "## Use",
        "```python\nfrom avalanche_f2ocl import load_model\n\n"
        f'model = load_model("hf-hub:{repo_id}")\n'
        'ids, probabilities = model.topk(["photo.jpg"], k=1)\n'
        "print([model.class_names.get(i, i) for i in ids[0].tolist()], probabilities[0].tolist())\n```",
        f"Or, without Python: `f2ocl predict hf-hub:{repo_id} photo.jpg`. The file holds tensors (safetensors) and "
        "JSON; loading it runs no code, and is refused if the backbone's weights have another SHA-256.",
        *([f"It needs {', '.join(needs)}, of its author's own code, to be registered before."] if needs else []),
        "## Classes",
        _table(("id", "class", "images"), [(c["id"], _text(c["name"]), c["images"]) for c in classes[:MOST_CLASSES]]),
        *([f"And {len(classes) - MOST_CLASSES} more."] if len(classes) > MOST_CLASSES else []),
        "## Options",
        f"```json\n{json.dumps(options, indent=1)}\n```",
    ]


def _classes(count: int) -> str:
    return "class" if count == 1 else "classes"


def _table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join("" if cell is None else str(cell) for cell in line) + " |" for line in lines)


def _text(name: str | None) -> str | None:
    """A name on one line, with its special characters escaped."""
    return None if name is None else _MARKUP.sub(r"\\\1", " ".join(name.split()))
