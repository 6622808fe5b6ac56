"""The models that files can hold, by the name of the strategy they share files with."""

from pathlib import Path
from typing import Any

from avalanche_f2ocl.models.f2ocl import F2OCLModel
from avalanche_f2ocl.models.frozen import FrozenModel, ViTNCMModel
from avalanche_f2ocl.models.model_file import read_model_file
from avalanche_f2ocl.models.random_prompt import RandomPromptModel
from avalanche_f2ocl.models.saving import SavedModel

MODELS: dict[str, type[SavedModel]] = {
    cls.saved_as: cls for cls in (F2OCLModel, FrozenModel, RandomPromptModel, ViTNCMModel)
}


def load_model(path: str | Path, backbone: Any = None, **options: Any) -> SavedModel:
    """The model of a file, of whichever class it is.

    Args:
        path, backbone: as :meth:`avalanche_f2ocl.models.saving.SavedModel.from_file`.
        **options: as there.

    Raises:
        FileNotFoundError, ValueError: as there; a file of a strategy whose model needs Avalanche.

    Example:
        >>> import os, tempfile, torch
        >>> model = F2OCLModel("micro_vit", prompt_length=2)
        >>> model.learn(torch.zeros(2, 3, 32, 32), ["cat", "dog"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(os.path.join(folder, "learned.safetensors"))
        ...     type(load_model(os.path.join(folder, "learned.safetensors"))).__name__
        'F2OCLModel'
    """
    kind = read_model_file(path)[1]["strategy"]
    if kind not in MODELS:
        raise ValueError(f"{str(path)!r} is of {kind}: models alone are read of {', '.join(MODELS)}; use {kind}.load")
    return MODELS[kind].from_file(path, backbone, **options)
