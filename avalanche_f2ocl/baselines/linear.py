"""A linear head on the frozen backbone, trained by cross-entropy: the basis of ER, LwF and methods with prompts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import Unpack

from avalanche_f2ocl.arguments import check_positive
from avalanche_f2ocl.keywords import EncoderKeywords
from avalanche_f2ocl.models.base import BaseModel
from avalanche_f2ocl.models.batch import TrainingBatch
from avalanche_f2ocl.models.prediction import Prediction
from avalanche_f2ocl.options import DEFAULT_BACKBONE, EncoderOptions
from avalanche_f2ocl.rng import generator
from avalanche_f2ocl.state.class_means import mask_unseen
from avalanche_f2ocl.state.prompts import initial_prompt
from avalanche_f2ocl.state.rows import ClassRows
from avalanche_f2ocl.strategies.base import BaseStrategy
from avalanche_f2ocl.strategies.keywords import StrategyKeywords

MaskLogits = Literal["none", "batch"]
HeadInit = Literal["zeros", "normal", "uniform"]


@dataclass(frozen=True)
class LinearConfig(EncoderOptions):
    """Options of a trained linear head, checked at construction.

    Args:
        lr: the optimiser's step size.
        mask_logits: ``"none"``, the cross-entropy runs over the classes so far; ``"batch"``, only over those of the
            mini-batch, so that absent classes are not pushed down.
        head_init: initial weights of a new class: ``"zeros"``; ``"normal"`` with standard deviation 0.02, as in timm's
            heads; or ``"uniform"`` in +-1/sqrt(D), as in :class:`torch.nn.Linear`. Biases start at zero.
        readout: ``"cls"`` or ``"patch"``.
        normalise, inputs, fit, precision, seed: see :class:`avalanche_f2ocl.options.EncoderOptions`.

    Raises:
        TypeError, ValueError: an option is not allowed.
    """

    lr: float = 0.01
    mask_logits: MaskLogits = "none"
    head_init: HeadInit = "zeros"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("lr", self.lr)


class LinearKeywords(EncoderKeywords, StrategyKeywords, total=False):
    """Keywords of every strategy with a linear head."""

    lr: float
    mask_logits: MaskLogits
    head_init: HeadInit


class LinearStrategyKeywords(LinearKeywords, total=False):
    """Keywords of :class:`LinearStrategy`."""

    config: LinearConfig | None


class LinearHead(ClassRows):
    """One shared linear classifier over all classes so far.

    Args:
        dim: length D of the embeddings.
        init: initial weights of a class, see :class:`LinearConfig`.
        seed: seed of the initial weights; a class's weights are a function of the seed and the class id.

    Example:
        >>> head = LinearHead(2)
        >>> _ = head.add_rows(3)
        >>> head(torch.ones(4, 2)).shape
        torch.Size([4, 3])
    """

    weight: Tensor
    bias: Tensor
    counts: Tensor

    def __init__(self, dim: int, init: HeadInit = "zeros", seed: int = 0) -> None:
        super().__init__()
        self.init, self.seed = init, seed
        self.register_rows("weight", dim, trainable=True)
        self.register_rows("bias", trainable=True)
        self.register_rows("counts", dtype=torch.int64)

    @torch.no_grad()
    def add_classes(self, ids: Tensor) -> None:
        """Adds a row for each of the class ids ``(N,)``, int64 on the CPU."""
        new, dim = self.add_rows(len(ids)), self.weight.shape[1]
        if self.init != "zeros":
            draws = [initial_prompt(self.init, (dim,), generator(self.seed, "head", c)) for c in ids.tolist()]
            weights = torch.stack(draws) / (dim**0.5 if self.init == "uniform" else 1)
            self.weight[new] = weights.to(self.weight.device, non_blocking=True)

    def forward(self, z: Tensor) -> Tensor:
        """Unmasked logits: ``(B, D)`` to ``(B, C)``."""
        return F.linear(z, self.used("weight"), self.used("bias"))

    def training_logits(self, z: Tensor, rows: Tensor) -> Tensor:
        """Logits of only the classes ``rows (R,)``: ``(B, D)`` to ``(B, R)``; gradients flow to these classes."""
        return F.linear(z, self.trainable("weight", rows), self.trainable("bias", rows))

    def logits(self, z: Tensor) -> Tensor:
        """The logits of :meth:`forward`, masked for classes without a sample."""
        return mask_unseen(self(z), self.used("counts"))


class LinearModel(BaseModel):
    """Frozen backbone and linear head, one SGD step per mini-batch.

    Args:
        backbone, weights, image_size, device, config: see :class:`avalanche_f2ocl.FrozenModel`.
        **options: options of :class:`LinearConfig`.

    Example:
        >>> model = LinearModel("micro_vit", lr=0.01)
        >>> model.learn(torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8), [0, 1, 1, 0])
    """

    config_type = LinearConfig
    config: LinearConfig
    head: LinearHead

    def __init__(self, backbone: str | nn.Module = DEFAULT_BACKBONE, **options: Any) -> None:
        super().__init__(backbone, **options)
        self.head = self.make_head()
        self.optimizer = torch.optim.SGD(self.head.parameters(), lr=self.config.lr)
        self.to(self.backbone.device)

    def make_head(self) -> LinearHead:
        """The head of :attr:`config`."""
        return LinearHead(self.backbone.embed_dim, self.config.head_init, self.config.seed)

    def add_classes(self, ids: Tensor) -> None:
        self.classes.add(ids)
        self.head.add_classes(ids)

    @property
    def updates(self) -> tuple[Callable[[TrainingBatch], None], ...]:
        return (self.count_batch,)

    def loss(self, batch: TrainingBatch) -> Tensor:
        """Mean cross-entropy, scalar."""
        return self.cross_entropy(batch.encoded, batch)

    def cross_entropy(self, z: Tensor, batch: TrainingBatch) -> Tensor:
        """Mean cross-entropy of embeddings ``(B, D)``, scalar."""
        rows, targets = self.loss_classes(batch)
        return F.cross_entropy(self.head.training_logits(z, rows), targets)

    def loss_classes(self, batch: TrainingBatch) -> tuple[Tensor, Tensor]:
        """Rows ``(R,)`` of the classes that the cross-entropy runs over, and each sample's index in them, ``(B,)``."""
        if self.config.mask_logits == "batch":
            return batch.class_rows, batch.local
        return torch.arange(self.head.num_rows, device=self.device), batch.rows

    @torch.no_grad()
    def count_batch(self, batch: TrainingBatch) -> None:
        """Counts the mini-batch and its samples, after its step."""
        self.head.counts.index_add_(0, batch.rows, torch.ones_like(batch.rows))
        self.batches += 1

    def batch_logits(self, batch: TrainingBatch) -> Tensor:
        z = batch.encoded.detach()  # from the forward pass of training, whose gradient the loss needs
        with torch.no_grad():
            return self.head.logits(z)

    @torch.no_grad()
    def predict_batch(self, images: Tensor) -> Prediction:
        tokens = self.backbone.tokens(images)
        return Prediction(self.head.logits(self.backbone.query(images, tokens)), tokens)


class LinearStrategy(BaseStrategy):
    """Online training of the linear head, which forgets because its softmax favours the latest classes.

    Args:
        backbone: timm name with tag, ``"micro_vit"``, or a ViT of timm's (frozen in place).
        weights: local checkpoint for a named backbone; by default timm downloads the weights.
        image_size: side of the images in pixels; by default the backbone's own.
        device: by default CUDA if there is a CUDA device, else the CPU.
        config: all options of :class:`LinearConfig` at once.
        **options: single options, which override ``config``, and those of the training loop, see
            :class:`avalanche_f2ocl.strategies.base.BaseStrategy`.

    Raises:
        TypeError, ValueError: an option is not allowed.
        OSError: the weights could not be loaded.

    Example:
        >>> LinearStrategy(backbone="micro_vit", evaluator=None).train_mb_size
        10
    """

    model_type = LinearModel
    model: LinearModel

    def __init__(self, **options: Unpack[LinearStrategyKeywords]) -> None:
        super().__init__(**options)
