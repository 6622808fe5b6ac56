"""Models that can be read from a file, by the name of the strategy that writes the same files."""

from pathlib import Path
from typing import Any

from avalanche_f2ocl.models.f2ocl import F2OCLModel
from avalanche_f2ocl.models.frozen import FrozenModel, ViTNCMModel
from avalanche_f2ocl.models.hub import HubModel, learned_file
from avalanche_f2ocl.models.model_file import read_model_file
from avalanche_f2ocl.models.random_prompt import RandomPromptModel

MODELS: dict[str, type[HubModel]] = {
    cls.saved_as: cls for cls in (F2OCLModel, FrozenModel, RandomPromptModel, ViTNCMModel)
}


def load_model(path: str | Path, backbone: Any = None, **options: Any) -> HubModel:
    """Reads a model from a file, whatever its class.

    Args:
        path: a file written by a model's or strategy's ``save``; a folder written by ``save_pretrained``; or
            ``"hf-hub:user/name"``, a repository on the Hugging Face Hub, after which ``@`` and a branch, tag or commit
            may follow.
        backbone: a timm name or module; by default the backbone comes from the file, if its weights are there, and is
            otherwise loaded by its name.
        **options: ``weights``, ``device`` and ``precision`` of
            :meth:`avalanche_f2ocl.models.saving.SavedModel.from_file`.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: the repository cannot be read, see :meth:`avalanche_f2ocl.models.hub.HubModel.from_pretrained`.
        ValueError: the file is damaged, does not fit, or is of a strategy whose model needs Avalanche.

    Example:
        >>> import os, tempfile, torch
        >>> model = F2OCLModel("micro_vit", prompt_length=2)
        >>> model.learn(torch.zeros(2, 3, 32, 32), ["cat", "dog"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(os.path.join(folder, "learned.safetensors"))
        ...     type(load_model(os.path.join(folder, "learned.safetensors"))).__name__
        'F2OCLModel'
    """
    path = learned_file(path)
    kind = read_model_file(path)[1]["strategy"]
    if kind not in MODELS:
        raise ValueError(f"{str(path)!r} is of {kind}: only {', '.join(MODELS)} have models to read; use {kind}.load")
    return MODELS[kind].from_file(path, backbone, **options)
