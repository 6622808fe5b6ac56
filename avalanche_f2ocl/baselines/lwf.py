"""LwF: learning without forgetting, by distilling an earlier copy of the head."""

from copy import deepcopy
from dataclasses import dataclass

from avalanche.core import SupervisedPlugin
from avalanche.training.plugins import LwFPlugin
from avalanche.training.regularization import LearningWithoutForgetting
from torch import Tensor
from torch.nn import functional as F
from typing_extensions import Unpack

from avalanche_f2ocl.arguments import check_positive_int
from avalanche_f2ocl.baselines.linear import LinearConfig, LinearHead, LinearKeywords, LinearModel
from avalanche_f2ocl.models.base import BaseModel
from avalanche_f2ocl.strategies.base import BaseStrategy
from avalanche_f2ocl.strategies.boundaries import AtBoundaries
from avalanche_f2ocl.strategies.plugins import training_batch


@dataclass(frozen=True)
class LwFConfig(LinearConfig):
    """Options of LwF, checked at construction.

    Args:
        alpha: weight of the distillation loss.
        distillation_temperature: temperature of the softmaxes in the distillation loss.
        refresh_every: number of mini-batches after which the present head becomes the teacher; None to do so at task
            boundaries.
        lr: SGD's step size; the default comes from a sweep, see benchmarks/README.md.
        mask_logits, head_init, readout, normalise, inputs, fit, precision, seed: see
            :class:`avalanche_f2ocl.baselines.linear.LinearConfig`.

    Raises:
        TypeError, ValueError: an option is not allowed.
    """

    alpha: float = 1.0
    distillation_temperature: float = 2.0
    refresh_every: int | None = None
    lr: float = 1e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.refresh_every is not None:
            check_positive_int("refresh_every", self.refresh_every)


class LwFKeywords(LinearKeywords, total=False):
    """Keywords of :class:`LwF`."""

    config: LwFConfig | None
    alpha: float
    distillation_temperature: float
    refresh_every: int | None


class HeadDistillation(LearningWithoutForgetting):
    """Avalanche's loss with a slice of the teacher's rows, since indexing by a list makes the host wait."""

    def _distillation_loss(self, out: Tensor, prev_out: Tensor, active_units: set[int]) -> Tensor:
        known = out[:, : len(active_units)]  # the teacher's classes are the first
        student, teacher = (F.log_softmax(logits / self.temperature, dim=1) for logits in (known, prev_out))
        return F.kl_div(student, teacher, reduction="batchmean", log_target=True)


class HeadLwFPlugin(AtBoundaries, LwFPlugin):
    """Avalanche's LwF on the frozen features, where only the head is copied and distilled.

    Args:
        alpha: weight of the distillation loss.
        temperature: temperature of the softmaxes in the distillation loss.
        refresh_every: number of mini-batches between two copies. None copies at boundaries: at the end of a plain
            experience, or of a call of ``train`` on an online stream.
    """

    def __init__(self, alpha: float, temperature: float, refresh_every: int | None = None):
        super().__init__()
        self.lwf, self.refresh_every = HeadDistillation(alpha, temperature), refresh_every

    def before_training_iteration(self, strategy, **kwargs):
        strategy.undo.save_attributes(self.lwf, "prev_model", "prev_classes_by_task", "expcount")

    def before_backward(self, strategy, **kwargs):
        q, head = training_batch(strategy).q, strategy.model.head
        strategy.loss += self.lwf(q, head(q), head)

    def after_training_iteration(self, strategy, **kwargs):
        # This plugin comes before the one that counts the mini-batch.
        if self.refresh_every and (strategy.model.batches + 1) % self.refresh_every == 0:
            self.teach(deepcopy(strategy.model.head))

    def at_boundary(self, strategy):
        if not self.refresh_every:
            self.teach(deepcopy(strategy.model.head))

    def forget_class(self, class_id: int, row: int) -> None:
        """Removes a class that the model forgets from the teacher, if it is there."""
        teacher = self.lwf.prev_model
        if teacher is not None and row < teacher.num_rows:
            teacher.remove_row(row)
            self.lwf.prev_classes_by_task = {0: set(range(teacher.num_rows))}

    def teach(self, head: LinearHead) -> None:
        """Makes ``head`` the teacher."""
        self.lwf.prev_model = head
        self.lwf.prev_classes_by_task = {0: set(range(head.num_rows))}
        self.lwf.expcount += 1


class LwFModel(LinearModel):
    """The linear head, with LwF's options.

    Example:
        >>> LwFModel("micro_vit").config.alpha
        1.0
    """

    config_type = LwFConfig
    config: LwFConfig


class LwF(BaseStrategy):
    """A linear head that is trained with LwF's distillation loss.

    It uses task boundaries, unless ``refresh_every`` is given; see :class:`HeadLwFPlugin`.

    Source: Li and Hoiem, Learning without Forgetting, 2016; loss and teacher are Avalanche's.

    Args:
        backbone: timm name with tag, ``"micro_vit"``, or a ViT of timm's (frozen in place).
        weights: local checkpoint for a named backbone; by default timm downloads the weights.
        image_size: side of the images in pixels; by default the backbone's own.
        device: by default CUDA if there is a CUDA device, else the CPU.
        config: all options of :class:`LwFConfig` at once.
        **options: single options, which override ``config``, and those of the training loop, see
            :class:`avalanche_f2ocl.strategies.base.BaseStrategy`.

    Attributes:
        distillation: the plugin that adds the distillation loss.

    Raises:
        TypeError, ValueError: an option is not allowed.

    Example:
        >>> LwF(backbone="micro_vit", alpha=2.0, evaluator=None).train_mb_size
        10
    """

    model_type = LwFModel
    model: LwFModel

    def __init__(self, **options: Unpack[LwFKeywords]) -> None:
        super().__init__(**options)

    def method_plugins(self, model: BaseModel) -> list[SupervisedPlugin]:
        config = model.config
        self.distillation = HeadLwFPlugin(config.alpha, config.distillation_temperature, config.refresh_every)
        model.followers.append(self.distillation)
        return [self.distillation, *super().method_plugins(model)]

    def own_tensors(self) -> dict[str, Tensor]:
        teacher = self.distillation.lwf.prev_model
        return {} if teacher is None else teacher.state_dict()

    def load_own_tensors(self, tensors: dict[str, Tensor]) -> None:
        if tensors:
            teacher = LinearHead(self.model.backbone.embed_dim)
            teacher.load_state_dict(tensors)
            self.distillation.teach(teacher.to(self.device))
