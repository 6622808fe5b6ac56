"""Saving a model to a file and loading it, without a strategy."""

from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from typing_extensions import Self

from avalanche_f2ocl.backbone.devices import default_device
from avalanche_f2ocl.heads.calibration import Calibration
from avalanche_f2ocl.heads.familiarity import Familiarity
from avalanche_f2ocl.heads.head import SumHead
from avalanche_f2ocl.heads.second_moments import SecondMomentHead
from avalanche_f2ocl.models.batch import TrainingBatch
from avalanche_f2ocl.models.learned import Learned
from avalanche_f2ocl.models.model_file import (
    check_needs,
    read_model_file,
    restore,
    saved_backbone,
    write_model_file,
)
from avalanche_f2ocl.models.resolved import decided_otherwise, resolved
from avalanche_f2ocl.models.unlearning import Unlearning
from avalanche_f2ocl.options import Precision
from avalanche_f2ocl.state.rows import ClassRows


class SavedModel(Unlearning):
    """A model that can be saved and loaded without a strategy.

    Attributes:
        saved_as: name of the strategy class that writes the same files.
    """

    saved_as: ClassVar[str]
    head: SumHead
    calibration: Calibration
    familiarity: Familiarity

    def add_classes(self, ids: Tensor) -> None:
        super().add_classes(ids)
        self.calibration.add_rows(len(ids))
        self.familiarity.add_rows(len(ids))

    def take_in(
        self,
        batch: TrainingBatch,
        features: Tensor,
        embeddings: Tensor,
        before: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        """Adds a mini-batch to head and familiarity and ends it; both are judged on it first.

        Args:
            batch: the mini-batch.
            features: the head's features, ``(B, F)``.
            embeddings: see :class:`avalanche_f2ocl.heads.familiarity.Familiarity`, ``(B, parts, D)``.
            before: features and embeddings from before anything had seen the labels; by default the same.
        """
        judged, scored = (features, embeddings) if before is None else before
        highest = self.calibration.judge(self.head, judged, batch.rows)
        self.familiarity.judge(scored, batch.rows, highest)
        self.head.update(features, batch.rows, batch.images)
        self.batches += 1
        self.calibration.hold(self.head, self.batches)
        self.familiarity.learn(embeddings, batch.rows, self.batches)

    def save(self, path: str | Path, *, backbone: bool = False, min_class_count: int = 1) -> None:
        """Writes what has been learned to one file, whole or not at all; a strategy can load it too.

        Args:
            path: path of the file, in an existing folder.
            backbone: whether the file also holds the frozen weights.
            min_class_count: classes with fewer samples are left out; 2 leaves out classes seen once, whose sum is that
                image's embedding.

        Raises:
            OSError: the file cannot be written; an old file is left as it was.
            TypeError, ValueError: ``min_class_count`` is no positive int, or leaves no class.

        Example:
            >>> import os, tempfile
            >>> from avalanche_f2ocl import ViTNCMModel
            >>> model = ViTNCMModel("micro_vit")
            >>> model.learn(torch.zeros(2, 3, 32, 32), ["cat", "dog"])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     model.save(os.path.join(folder, "learned.safetensors"))
        """
        write_model_file(
            Learned(self, self.saved_as, self.optimizer), path, self.options, None, backbone, min_class_count
        )

    def save_again(self, path: str | Path) -> None:
        """Writes the model back to the file that it was read from, whole or not at all.

        What a strategy's run noted in the file stays, so that the run can be resumed; so does a backbone in the file.

        Args:
            path: path of the file.

        Raises:
            OSError: the file cannot be written; it is left as it was.
            ValueError: the file is damaged or does not fit the model.
        """
        tensors, values = read_model_file(path)
        backbone = any(name.startswith("backbone.") for name in tensors)
        learned = Learned(self, values["strategy"], self.optimizer)
        write_model_file(learned, path, values["options"], values, backbone)

    def saved_bytes(self, new_classes: int = 0, backbone: bool = False) -> int:
        """About how many bytes :meth:`save` writes once ``new_classes`` more classes have been learned.

        Args:
            new_classes: number of classes besides those that are known.
            backbone: whether the file also holds the frozen weights.
        """
        learned = [t for name, t in self.state_dict().items() if not name.startswith("backbone.")]
        total = sum(t.nbytes for t in learned)
        for part in self.learned_parts():
            for name in part.row_names if isinstance(part, ClassRows) else ():
                rows = getattr(part, name)
                copies = 3 if rows.requires_grad else 1  # with the optimiser's two moments
                total += new_classes * copies * rows.shape[1:].numel() * rows.element_size()
            if isinstance(part, SecondMomentHead):
                total += part.solution_bytes(new_classes)
        return total + backbone * sum(t.nbytes for t in self.backbone.weights.state_dict().values())

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        backbone: str | nn.Module | None = None,
        *,
        weights: str | Path | None = None,
        device: str | torch.device | None = None,
        precision: Precision | None = None,
    ) -> Self:
        """Reads a model from a file, to predict with it or to let it learn more.

        Args:
            path: a file written by :meth:`save` or by a strategy's ``save``.
            backbone: a timm name or module. By default the backbone comes from the file, if its weights are there, and
                is otherwise loaded by its name.
            weights: local checkpoint for a named backbone.
            device: by default CUDA if there is a CUDA device, else the CPU.
            precision: precision of the backbone; by default the one used in learning, since the sums are of embeddings
                in that precision.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged, is of another format or kind, was learned on other weights, or needs a
                head, prompts or an election of a user's own that is not known here.

        Example:
            >>> import os, tempfile
            >>> from avalanche_f2ocl import F2OCLModel
            >>> model = F2OCLModel("micro_vit", prompt_length=2)
            >>> model.learn(torch.zeros(2, 3, 32, 32), ["cat", "dog"])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     model.save(os.path.join(folder, "learned.safetensors"))
            ...     again = F2OCLModel.from_file(os.path.join(folder, "learned.safetensors"))
            >>> again.class_names
            {0: 'cat', 1: 'dog'}
        """
        tensors, values = read_model_file(path)
        if values["strategy"] != cls.saved_as:
            raise ValueError(f"{str(path)!r} is of {values['strategy']}: {cls.__name__} reads files of {cls.saved_as}")
        check_needs(values, path)
        if backbone is None:
            backbone = saved_backbone(tensors, values)
        size = {} if isinstance(backbone, nn.Module) else {"image_size": values["backbone"]["image_size"]}
        device = default_device(device)
        options = values["options"] | ({} if precision is None else {"precision": precision})
        place: dict[str, Any] = dict(backbone=backbone, weights=weights, device=device, **size)
        model = cls.from_options(options, **place)
        if other := decided_otherwise(values | {"options": options}, tensors, resolved(model.backbone, model.head)):
            model = cls.from_options(options | other, **place)
        restore(Learned(model, cls.saved_as, model.optimizer), tensors, values, path)
        return model.to(device)
