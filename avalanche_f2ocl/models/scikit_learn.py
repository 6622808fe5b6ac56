"""A model that follows scikit-learn's conventions."""

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, column_or_1d, validate_data
from torch import Tensor, nn
from typing_extensions import Self

from avalanche_f2ocl.arguments import check_positive_int
from avalanche_f2ocl.models.methods import make_model
from avalanche_f2ocl.models.saving import SavedModel
from avalanche_f2ocl.options import DEFAULT_BACKBONE

_PREDICTED = 128  # images at a time


class F2OCLClassifier(ClassifierMixin, BaseEstimator):
    """Learns classes online from arrays of images, for pipelines, cross-validation and searches of scikit-learn.

    :meth:`fit` makes one pass over the images in their order, in mini-batches; :meth:`partial_fit` learns more, with
    new classes as they come. Images are ``(N, H, W)``, ``(N, H, W, C)`` or rows ``(N, F)``, with C 1 or 3, uint8 or
    floats in [0, 1]; or a tensor ``(N, C, H, W)``.

    Args:
        backbone: timm name with tag, ``"micro_vit"``, or a ViT of timm's.
        method: ``"best"``, the recommended settings; ``"f2ocl"``, the paper's; ``"vit-ridge"`` or ``"vit-ncm"``,
            without prompts.
        weights: local checkpoint for a named backbone.
        image_size: side of the images in pixels; by default the backbone's own.
        device: by default CUDA if there is a CUDA device, else the CPU.
        options: options of the method, by name.
        batch_size: number of images in a mini-batch.
        image_shape: ``(H, W)`` or ``(H, W, C)`` of images that come as rows ``(N, F)``, as scikit-learn flattens them.

    Attributes:
        classes_: sorted labels that were seen so far or announced to ``partial_fit``, ``(C,)``.
        model_: the model that has learned; its class ids count the labels in order of appearance, and its class names
            are the labels as text.
        n_features_in_: length F of rows.

    Example:
        >>> from sklearn.datasets import load_digits
        >>> digits = load_digits()
        >>> classifier = F2OCLClassifier("micro_vit", method="vit-ncm")
        >>> _ = classifier.fit(digits.images[:100] / 16, digits.target[:100])
        >>> classifier.predict_proba(digits.images[100:103] / 16).shape
        (3, 10)
    """

    classes_: np.ndarray
    model_: SavedModel
    _seen: list[Any]
    _announced: list[Any] | None

    def __init__(
        self,
        backbone: str | nn.Module = DEFAULT_BACKBONE,
        *,
        method: str = "best",
        weights: str | Path | None = None,
        image_size: int | None = None,
        device: str | torch.device | None = None,
        options: Mapping[str, Any] | None = None,
        batch_size: int = 10,
        image_shape: tuple[int, ...] | None = None,
    ) -> None:
        self.backbone, self.method, self.weights, self.image_size = backbone, method, weights, image_size
        self.device, self.options, self.batch_size, self.image_shape = device, options, batch_size, image_shape

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Forgets everything learned before and learns the images in one pass.

        Args:
            X: images.
            y: labels ``(N,)``: integers, strings, or anything else that scikit-learn accepts as classes.

        Raises:
            TypeError, ValueError: the images, labels or options are not allowed.
        """
        return self._learn(X, y, None, anew=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learns more images, without forgetting what was learned before.

        Args:
            X: images.
            y: labels ``(N,)``.
            classes: all labels that will ever occur; optional. They are listed in ``classes_`` from then on, with
                probability 0 until they are learned, and other labels raise an error.

        Raises:
            TypeError, ValueError: the images, labels or options are not allowed.
        """
        return self._learn(X, y, classes, anew=not hasattr(self, "model_"))

    def predict(self, X: Any) -> np.ndarray:
        """Predicts labels.

        Args:
            X: images.

        Returns:
            Labels ``(N,)``.

        Raises:
            TypeError, ValueError: the images are not allowed, or nothing has been learned yet, which is scikit-learn's
                ``NotFittedError``.
        """
        columns = self.predict_proba(X).argmax(1)
        return self.classes_[columns]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predicts the probability of each class.

        Args:
            X: images.

        Returns:
            ``(N, C)`` float32, with columns in the order of ``classes_``.

        Raises:
            TypeError, ValueError: the images are not allowed, or nothing has been learned yet, which is scikit-learn's
                ``NotFittedError``.
        """
        check_is_fitted(self, "model_")
        found = [self.model_.predict_proba(part) for part in self._images(X, reset=False).split(_PREDICTED)]
        shares = torch.cat(found).cpu().numpy()
        columns = np.searchsorted(self.classes_, np.asarray(self._seen))
        probabilities = np.zeros((len(shares), len(self.classes_)), shares.dtype)
        probabilities[:, columns] = shares
        return probabilities

    def _learn(self, X: Any, y: Any, classes: Any, anew: bool) -> Self:
        check_positive_int("batch_size", self.batch_size)
        images, labels = self._images(X, reset=anew), column_or_1d(y, warn=True)
        check_consistent_length(images, labels)
        check_classification_targets(labels)
        given, announced = labels.tolist(), None if anew else self._announced
        announced = announced if classes is None else list(classes)
        if announced is not None and (others := {*given} - {*announced}):
            raise ValueError(f"y has labels {sorted(others)} beside classes={announced}")
        seen = list(dict.fromkeys([*([] if anew else self._seen), *given]))
        id_of = {label: class_id for class_id, label in enumerate(seen)}
        ids = torch.tensor([id_of[label] for label in given])
        backbone = deepcopy(self.backbone)  # a model freezes its ViT in place, but parameters must stay as they are
        own = (self.method, backbone, self.weights, self.image_size, self.options or {}, self.device)
        model = make_model(*own) if anew else self.model_
        model.check(images)
        for part, own_ids in zip(images.split(self.batch_size), ids.split(self.batch_size), strict=True):
            model.learn(part, own_ids)
        model.class_names = {class_id: str(label) for class_id, label in enumerate(seen)}
        self.model_, self._seen, self._announced = model, seen, announced
        self.classes_ = np.unique(seen if announced is None else announced)
        return self

    def _images(self, X: Any, reset: bool) -> Tensor:
        """Images ``(N, C, H, W)`` of any allowed form; with ``reset``, they define the length of rows."""
        if isinstance(X, Tensor):
            return X
        X = X if hasattr(X, "ndim") else np.asarray(X)
        if X.ndim > 2:
            pixels = check_array(X, allow_nd=True, ensure_2d=False)
        else:
            pixels = self._of_rows(validate_data(self, X, reset=reset))
        images = torch.from_numpy(np.ascontiguousarray(pixels))
        images = images.float() if images.dtype == torch.float64 else images
        return images.unsqueeze(1) if images.dim() == 3 else images.movedim(-1, 1)

    def _of_rows(self, rows: np.ndarray) -> np.ndarray:
        """Rows ``(N, F)`` as images ``(N, H, W)`` or ``(N, H, W, C)``."""
        shape = self.image_shape
        if shape is None or len(shape) not in (2, 3) or np.prod(shape) != rows.shape[1]:
            raise ValueError(f"image_shape={shape!r}: must be (H, W) or (H, W, C), for rows of {rows.shape[1]} pixels")
        return rows.reshape(-1, *shape)
