"""A model to and from a file, without a strategy."""

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
from avalanche_f2ocl.models.model_file import (
    Learned,
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
    """A model that needs no strategy to be saved and loaded.

    Attributes:
        saved_as: the strategy class whose files it shares.
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
        """Takes a mini-batch into head and familiarity and ends it; both are judged on it first.

        Args:
            batch: the mini-batch.
            features: what the head learns, ``(B, F)``.
            embeddings: see :class:`avalanche_f2ocl.heads.familiarity.Familiarity`, ``(B, parts, D)``.
            before: both as they were before anything had seen the labels; default the same.
        """
        judged, scored = (features, embeddings) if before is None else before
        self.calibration.judge(self.head, judged, batch.rows)
        self.familiarity.judge(scored, batch.rows)
        self.head.update(features, batch.rows, batch.images)
        self.batches += 1
        self.calibration.hold(self.head, self.batches)
        self.familiarity.learn(embeddings, batch.rows, self.batches)

    def save(self, path: str | Path, *, backbone: bool = False, min_class_count: int = 1) -> None:
        """Writes what has been learned to one file, whole or not at all; a strategy can load it too.

        Args:
            path, backbone, min_class_count: see :meth:`avalanche_f2ocl.F2OCLStrategy.save`.

        Raises:
            OSError, TypeError, ValueError: as there.
        """
        write_model_file(
            Learned(self, self.saved_as, self.optimizer), path, self.options, None, backbone, min_class_count
        )

    def save_again(self, path: str | Path) -> None:
        """Writes the model back to the file that it was read from, whole or not at all.

        What a strategy's run noted there stays, so that it can be resumed, and so does the backbone where it is there.

        Args:
            path: of the file.

        Raises:
            OSError, ValueError: as :meth:`save` and :meth:`from_file`.
        """
        tensors, values = read_model_file(path)
        backbone = any(name.startswith("backbone.") for name in tensors)
        learned = Learned(self, values["strategy"], self.optimizer)
        write_model_file(learned, path, values["options"], values, backbone)

    def saved_bytes(self, new_classes: int = 0, backbone: bool = False) -> int:
        """About how many bytes :meth:`save` writes once so many more classes have been learned.

        Args:
            new_classes: beside those that are known.
            backbone: as :meth:`save`.
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
        """The model of a file, to predict with or to learn on.

        Args:
            path: written by :meth:`save`, or by a strategy's.
            backbone: a timm name or module. Default: from the file, if its weights are in it, else by its name.
            weights: local checkpoint for a named backbone.
            device: default CUDA if there is one, else CPU.
            precision: of the backbone; default that in which it was learned, since the sums are of that precision's
                embeddings.

        Raises:
            FileNotFoundError: no such file.
            ValueError: damaged, of another version or kind, learned on other weights, or with a head, prompts or an
                election of a user's own that is not known here.

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
