"""The whole prediction as one program that needs neither this package nor timm."""

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.models.base import BaseModel
from avalanche_f2ocl.state.rows import ClassRows


class _Prediction(nn.Module):
    def __init__(self, model: BaseModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.model.predict_batch(images).logits
        return self.model.class_ids[logits.argmax(1)], self.model.probabilities(logits)


def export_prediction(model: BaseModel, example: Tensor) -> ExportedProgram:
    """Exports the model's present prediction, from preprocessing to head; what it learns later is not included.

    Args:
        model: a model that has learned something.
        example: images ``(B, C, H, W)`` of the dtype, channels and size that the program is to take, on the model's
            device; the program takes any number of such images.

    Returns:
        A program from images to the predicted class ids ``(B,)`` int64 and the probabilities ``(B, C)`` of
        :meth:`avalanche_f2ocl.models.base.BaseModel.predict_proba`; for ``torch.export.save``. It checks nothing
        about pixels.

    Raises:
        RuntimeError: nothing has been learned yet.
        TypeError, ValueError: the model does not take such images.

    Example:
        >>> from avalanche_f2ocl import F2OCLModel
        >>> model = F2OCLModel("micro_vit", prompt_length=2)
        >>> images = torch.randint(0, 256, (3, 3, 40, 40), dtype=torch.uint8)
        >>> model.learn(images, [7, -3, 5])
        >>> ids, probabilities = export_prediction(model, images).module()(images[:2])
        >>> torch.equal(ids, model.predict(images[:2]))
        True
    """
    model.predict(example)  # raises
    model = frozen_copy(model)
    model.predict(example)  # solves the head
    # From one image, torch would conclude that the number of images is fixed.
    example = example.expand(2, -1, -1, -1) if len(example) == 1 else example
    with torch.no_grad():
        return torch.export.export(
            _Prediction(model), (example,), dynamic_shapes={"images": {0: Dim("batch", min=1)}}, strict=False
        )


def frozen_copy(model: BaseModel, backbone: PromptableViT | None = None) -> BaseModel:
    """A copy that only predicts, needed because an exported program refers to the tensors it is made from.

    Args:
        model: the model, which stays as it is.
        backbone: backbone of the copy, which goes to its device; by default the model's own, which is not copied.
    """
    backbone = backbone or model.backbone
    kept: dict[int, Any] = {id(model.backbone): backbone, id(model.optimizer): None, id(model.followers): []}
    model = deepcopy(model, kept).to(backbone.device)
    for part in model.modules():
        if isinstance(part, ClassRows):
            part.freeze()
    return model
