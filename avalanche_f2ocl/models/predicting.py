"""How every model predicts, without Avalanche."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from avalanche_f2ocl.arguments import check_number, check_positive, check_positive_int
from avalanche_f2ocl.backbone.vit import PromptableViT
from avalanche_f2ocl.checks import check_images
from avalanche_f2ocl.heads.calibration import Calibration
from avalanche_f2ocl.heads.familiarity import Familiarity
from avalanche_f2ocl.heads.head import Head
from avalanche_f2ocl.models.answers import UNKNOWN, Answers
from avalanche_f2ocl.models.inputs import Images, image_batch
from avalanche_f2ocl.models.lock import ModelLock
from avalanche_f2ocl.models.prediction import Prediction
from avalanche_f2ocl.state.class_table import ClassTable


class Predictor(nn.Module, ABC):
    """Frozen backbone, class table and head; scores images among the classes so far.

    Attributes:
        backbone: the frozen encoder.
        classes: class ids by row.
        head: scores embeddings.
        batches: mini-batches learned so far.
        lock: held while a mini-batch is learned or images are scored.
        temperature: divides the logits of probabilities until a calibrated temperature is known.
    """

    backbone: PromptableViT
    classes: ClassTable
    head: Head
    batches: int
    lock: ModelLock
    temperature: float = 1.0

    @abstractmethod
    def predict_batch(self, images: Tensor) -> Prediction:
        """Scores images ``(B, C, H, W)`` on the model's device, unchecked."""

    @property
    def class_ids(self) -> Tensor:
        """Ids of the classes so far in order of appearance, ``(C,)`` int64: those of the logits' columns."""
        return self.classes.used("ids")

    @property
    def device(self) -> torch.device:
        """The device that the model is on."""
        return self.classes.ids.device

    def batch_of(self, images: Images) -> Tensor:
        """Images of any form as a checked tensor ``(B, C, H, W)``; raises the errors of :meth:`forward`."""
        batch = image_batch(images, self.backbone.prepare)
        self.check(batch)
        return batch

    def check(self, images: Tensor) -> None:
        """Raises ``TypeError`` or ``ValueError`` unless the model can take ``images``."""
        check_images(images, self.backbone.prepare.inputs, self.backbone.image_size)

    @torch.no_grad()
    def forward(self, images: Images) -> Tensor:
        """Scores images, each by itself: other images of the mini-batch do not affect its scores.

        Args:
            images: ``(B, C, H, W)``, uint8 of any size or floats in [0, 1], one or three channels; or paths, PIL images
                and arrays, one or several, see :func:`avalanche_f2ocl.models.inputs.image_batch`.

        Returns:
            ``(B, C)`` float32, where column i is for class ``class_ids[i]``.

        Raises:
            TypeError, ValueError: the images are not allowed, see :func:`avalanche_f2ocl.checks.check_images`.

        Example:
            >>> from avalanche_f2ocl import ViTNCMModel
            >>> model = ViTNCMModel("micro_vit")
            >>> images = torch.randint(0, 256, (3, 3, 32, 32), dtype=torch.uint8)
            >>> model.learn(images, [7, -3, 7])
            >>> model(images).shape
            torch.Size([3, 2])
        """
        images = self.batch_of(images)
        with self.lock:
            return self.predict_batch(images.to(self.device)).logits

    def predict(self, images: Images, reject: float | None = None) -> Tensor:
        """Predicts the class ids of images.

        Args:
            images: ``(B, C, H, W)`` as in :meth:`forward`.
            reject: share of the images of known classes that may be rejected, in (0, 1). Images get :data:`UNKNOWN` if
                they look less like anything learned than this share of known images did. None: every image gets a
                class.

        Returns:
            ``(B,)`` int64.

        Raises:
            RuntimeError: nothing has been learned yet; with ``reject``, also if too little has been learned to tell
                unknown images, or if the model cannot tell them.
            TypeError, ValueError: the images are not allowed, or ``reject`` is not between 0 and 1.

        Example:
            >>> from avalanche_f2ocl import ViTNCMModel
            >>> model = ViTNCMModel("micro_vit")
            >>> images = torch.randint(0, 256, (3, 3, 32, 32), dtype=torch.uint8)
            >>> model.learn(images, [7, -3, 5])
            >>> model.predict(images).tolist()
            [7, -3, 5]
        """
        with self.lock:
            self._check_learned()
            if reject is None:
                return self.class_ids[self(images).argmax(1)]
            answers = self.answers(images, 1, reject)
            return answers.ids[:, 0].masked_fill(~answers.known, UNKNOWN)

    def answers(self, images: Images, k: int = 5, reject: float = 0.05) -> Answers:
        """The likeliest classes of images, and whether the images are likely to be of any learned class.

        Args:
            images: ``(B, C, H, W)`` as in :meth:`forward`.
            k: number of classes, at least 1; with fewer classes, all of them.
            reject: share of the images of known classes that may be rejected, in (0, 1), as in :meth:`predict`.

        Raises:
            RuntimeError: too little has been learned to tell unknown images, or the model cannot tell them.
            TypeError, ValueError: the images, ``k`` or ``reject`` are not allowed.

        Example:
            >>> from avalanche_f2ocl import ViTNCMModel
            >>> model = ViTNCMModel("micro_vit")
            >>> images = torch.randint(0, 256, (12, 3, 32, 32), dtype=torch.uint8)
            >>> for _ in range(5):
            ...     model.learn(images, [7, -3] * 6)
            >>> model.answers(images, reject=0.1).known.shape
            torch.Size([12])
        """
        check_positive_int("k", k)
        check_number("reject", reject)
        if not 0 < reject < 1:
            raise ValueError(f"reject={reject!r}: must be between 0 and 1")
        images = self.batch_of(images)
        with self.lock:
            self._check_learned()
            familiarity: Familiarity | None = getattr(self, "familiarity", None)
            if familiarity is None:
                raise RuntimeError(f"{type(self).__name__} cannot tell unknown images: predict without reject")
            if ((self.head.used("counts") > 0) & (familiarity.used("counts") == 0)).any():
                raise RuntimeError("some classes were learned by version 0.1, which cannot tell unknown images")
            threshold = familiarity.threshold(reject)
            prediction = self.predict_batch(images.to(self.device))
            probabilities, columns = self.probabilities(prediction.logits).topk(min(k, len(self.classes)), dim=1)
            assert prediction.embeddings is not None  # models with familiarity give them
            calibration: Calibration = self.calibration  # type: ignore[assignment]  # a module
            highest = prediction.logits.amax(1) if calibration.holds else None
            scores = familiarity.scores(prediction.embeddings, highest)
            return Answers(self.class_ids[columns], probabilities, scores >= threshold, scores)

    def predict_proba(self, images: Images, temperature: float | None = None) -> Tensor:
        """Probabilities: the softmax of the logits over a temperature.

        By default the temperature is calibrated, see :class:`avalanche_f2ocl.heads.calibration.Calibration`: it is the
        one that would have predicted each mini-batch best before it was learned. As long as images stay like those
        learned, about four in five predictions with a probability of 80 % are right. While fewer than ten images have
        been judged, and for models without calibration, it is the temperature of the contrastive loss if logits are
        cosines, and 1 otherwise.

        Args:
            images: ``(B, C, H, W)`` as in :meth:`forward`.
            temperature: divides the logits; None for the default described above.

        Returns:
            ``(B, C)`` float32, where column i is for class ``class_ids[i]``.

        Raises:
            RuntimeError: nothing has been learned yet.
            TypeError, ValueError: the images are not allowed, or the temperature is not positive.

        Example:
            >>> from avalanche_f2ocl import F2OCLModel
            >>> model = F2OCLModel("micro_vit", prompt_length=2)
            >>> images = torch.randint(0, 256, (3, 3, 32, 32), dtype=torch.uint8)
            >>> model.learn(images, [7, -3, 7])
            >>> model.predict_proba(images).shape
            torch.Size([3, 2])
        """
        if temperature is not None:
            check_positive("temperature", temperature)
        with self.lock:
            self._check_learned()
            return self.probabilities(self(images), temperature)

    def probabilities(self, logits: Tensor, temperature: float | None = None) -> Tensor:
        """Probabilities of logits ``(B, C)`` from :meth:`forward`, otherwise as :meth:`predict_proba`."""
        calibration: Calibration | None = getattr(self, "calibration", None)
        if temperature is None and calibration is not None:
            return calibration.probabilities(logits, self.temperature)
        return (logits / (self.temperature if temperature is None else temperature)).softmax(1)

    def topk(self, images: Images, k: int = 5) -> tuple[Tensor, Tensor]:
        """The k likeliest classes of each image.

        Args:
            images: ``(B, C, H, W)`` as in :meth:`forward`.
            k: number of classes, at least 1; with fewer classes, all of them.

        Returns:
            Class ids ``(B, k)`` int64 and their probabilities ``(B, k)`` float32, likeliest first.

        Raises:
            RuntimeError: nothing has been learned yet.
            TypeError, ValueError: the images are not allowed, or k is no positive int.

        Example:
            >>> from avalanche_f2ocl import ViTNCMModel
            >>> model = ViTNCMModel("micro_vit")
            >>> images = torch.randint(0, 256, (3, 3, 32, 32), dtype=torch.uint8)
            >>> model.learn(images, [7, -3, 5])
            >>> model.topk(images, k=2)[0][:, 0].tolist()
            [7, -3, 5]
        """
        check_positive_int("k", k)
        with self.lock:
            probabilities, columns = self.predict_proba(images).topk(min(k, max(1, len(self.classes))), dim=1)
            return self.class_ids[columns], probabilities

    def _check_learned(self) -> None:
        if self.batches == 0:
            raise RuntimeError("nothing has been learned yet: call learn(images, labels) first")
