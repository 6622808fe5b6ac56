"""Saving, loading and resuming, for strategies built on Avalanche's templates."""

import inspect
import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from avalanche_f2ocl.models.hub import learned_file
from avalanche_f2ocl.models.model_file import check_needs, read_model_file, saved_backbone
from avalanche_f2ocl.models.resolved import decided_otherwise, resolved
from avalanche_f2ocl.ranks import wait_for_all
from avalanche_f2ocl.strategies.known_evaluations import Evaluation, KnownEvaluations, describe
from avalanche_f2ocl.strategies.run_file import check_same_run, read_run, restore_learned, restore_run, save

_PLAIN = (bool, int, float, str, tuple, type(None))
_ENVIRONMENT = {"backbone", "weights", "image_size", "device", "config", "plugins", "evaluator"}
"""Constructor arguments that are not options of the method."""


class Resumable:
    """Mixin that gives ``save``, ``load`` and ``resume`` to a strategy whose constructor takes keywords only.

    Attributes:
        evaluations: the result of each ``eval`` so far, with its time and experiences.
        catching_up_batches: mini-batches still to come that the checkpoint has already learned.
    """

    if TYPE_CHECKING:  # attributes of the template that it is mixed with
        model: Any
        optimizer: Any
        skipped: int
        clock: Any
        evaluator: Any
    _given: dict[str, Any]
    evaluations: list[Evaluation]
    _known_evaluations: KnownEvaluations

    def __new__(cls, *args, **options):
        strategy = super().__new__(cls)
        strategy._given = options
        strategy.evaluations, strategy._known_evaluations, strategy.catching_up_batches = [], KnownEvaluations(), 0
        return strategy

    @property
    def options(self) -> dict[str, Any]:
        """Every plain option the strategy was made with, given or default, as JSON values."""
        options: dict[str, Any] = {}
        for cls in reversed(type(self).__mro__):
            if issubclass(cls, Resumable):
                parameters = inspect.signature(cls.__init__).parameters.values()
                options |= {p.name: p.default for p in parameters if isinstance(p.default, _PLAIN)}
        options |= {name: value for name, value in self._given.items() if name in options}
        options |= self.model.options
        return json.loads(json.dumps({name: options[name] for name in sorted(options) if name not in _ENVIRONMENT}))

    def save(self, path: str | Path, *, backbone: bool = False, min_class_count: int = 1) -> None:
        """Writes what has been learned to one file, whole or not at all.

        The file holds tensors as safetensors, and in its header, as JSON, the options, class ids, number of
        mini-batches learned, evaluations and the state of :func:`avalanche_f2ocl.f2ocl_metrics`. It holds no image and
        no pickle. The prototype of a class seen once is that sample's embedding; ``min_class_count=2`` leaves such
        classes out.

        Args:
            path: path of the file, in an existing folder.
            backbone: whether the file also holds the frozen weights.
            min_class_count: classes with fewer samples are left out; a run cannot be resumed from such a file.

        Raises:
            OSError: the file cannot be written; an old file is left as it was.
            RuntimeError: the strategy is still catching up after :meth:`resume`.
            NotImplementedError: the strategy stores images.

        Example:
            >>> import os, tempfile, torch
            >>> from avalanche_f2ocl import F2OCLStrategy
            >>> strategy = F2OCLStrategy(backbone="micro_vit", evaluator=None)
            >>> strategy.model.learn(torch.zeros(2, 3, 32, 32), [7, 3])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     strategy.save(os.path.join(folder, "learned.safetensors"))
            ...     again = F2OCLStrategy.load(os.path.join(folder, "learned.safetensors"), evaluator=None)
            >>> again.model.class_ids.tolist()
            [3, 7]
        """
        if self.catching_up:
            raise RuntimeError("the run has not caught up with its checkpoint yet: train on the same stream first")
        save(self, path, backbone, min_class_count)

    @classmethod
    def load(cls, path: str | Path, backbone: str | nn.Module | None = None, **options) -> "Resumable":
        """A strategy that has learned what the file's strategy had, for predictions or for another stream.

        Args:
            path: a file written by :meth:`save`; or a folder or ``"hf-hub:user/name"``, see
                :func:`avalanche_f2ocl.load_model`.
            backbone: a timm name or module. By default the backbone comes from the file, if its weights are there, and
                is otherwise loaded by its name.
            **options: options that override those of the file; also ``weights``, ``device``, ``plugins`` and
                ``evaluator``. Precision and the width of a projection are by default those used in learning.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged, is of another format or strategy, was learned on other weights, or needs
                a head, prompts or an election of a user's own that is not known here.

        Example:
            >>> from avalanche_f2ocl import F2OCLStrategy
            >>> strategy = F2OCLStrategy.load("learned.safetensors", evaluator=None)  # doctest: +SKIP
        """
        path = learned_file(path)
        tensors, values = read_model_file(path)
        check_needs(values, path)
        if backbone is None:
            backbone = saved_backbone(tensors, values)
        size = {} if isinstance(backbone, nn.Module) else {"image_size": values["backbone"]["image_size"]}
        given = {**size, **cls._as_config(values["options"], path), **options}
        strategy = cls(backbone=backbone, **given)
        here = resolved(strategy.model.backbone, strategy.model.head)
        if other := decided_otherwise(values | {"options": values["options"] | options}, tensors, here):
            strategy = cls(backbone=backbone, **{**given, **other})
        restore_learned(strategy, tensors, values, path)
        strategy.clock.train_exp_counter = values.get("experiences_done", 0)
        return strategy

    @classmethod
    def _as_config(cls, options: Mapping[str, Any], path: str | Path) -> dict[str, Any]:
        """A file's options as constructor arguments; the model's are one config, so that a subclass may fix some."""
        config_type = cls.model_type.config_type  # type: ignore[attr-defined]  # the strategy's
        names = {field.name for field in fields(config_type)}
        loop = {name: value for name, value in options.items() if name not in names}
        if strange := loop.keys() & (_ENVIRONMENT | {"self"}):
            raise ValueError(f"{str(path)!r} has unknown options {sorted(strange)}: the file is not ours")
        config = config_type(**{name: value for name, value in options.items() if name in names})
        return {"config": config, **loop}

    def resume(self, path: str | Path, *, missing_ok: bool = False) -> bool:
        """Continues a run from its checkpoint.

        Call it in the same script, on the strategy made as before, before the first ``train``. The script then
        goes through the same stream again: mini-batches that the checkpoint has learned are not learned again, and
        evaluations that it has recorded (identified by the number of mini-batches before them and the experiences
        evaluated) return the same numbers as before. So the stream must be replayable: the same samples in the same
        order, evaluated at the same times. While the run catches up, ``catching_up`` is True, and other plugins see
        experiences without mini-batches; their own state, and that of Avalanche's metrics, is not in the file. On the
        CPU, with the same number of threads (a warning is given if it differs), the run ends bit for bit as if it had
        never stopped.

        Args:
            path: a file written by :meth:`save` or :class:`avalanche_f2ocl.CheckpointPlugin`.
            missing_ok: whether a missing file is allowed; the run then starts from the beginning.

        Returns:
            Whether there was a file.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged, or is of another strategy, configuration, backbone or format; nothing has
                changed.
            RuntimeError: this strategy has already learned something.

        Example:
            >>> from avalanche_f2ocl import F2OCLStrategy
            >>> strategy = F2OCLStrategy(backbone="micro_vit", evaluator=None)
            >>> strategy.resume("run.safetensors", missing_ok=True)
            False
        """
        wait_for_all()
        if missing_ok and not Path(path).exists():
            return False
        if self.model.batches or self.clock.train_exp_counter:
            raise RuntimeError("this strategy has learned already: resume() comes before the first train()")
        tensors, values = read_run(path)
        check_same_run(self, values, path)
        restore_learned(self, tensors, values, path)
        restore_run(self, values)
        known = [Evaluation.read(evaluation) for evaluation in values["evaluations"]]
        self.evaluations, self._known_evaluations = [], KnownEvaluations(known)
        self.catching_up_batches = values["batches_done"]
        return True

    @property
    def catching_up(self) -> bool:
        """Whether mini-batches or evaluations that the checkpoint has recorded are still to come."""
        return self.catching_up_batches > 0 or self._known_evaluations.to_come(self.clock.train_iterations)

    def own_tensors(self) -> dict[str, Tensor]:
        """Tensors that the strategy has learned outside its model, with a row per class; usually there are none."""
        return {}

    def load_own_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Restores tensors that :meth:`own_tensors` gave."""

    def eval(self, exp_list, **kwargs):
        """Avalanche's ``eval``; while the run catches up, it returns the results recorded in the checkpoint.

        Raises:
            RuntimeError: the evaluation is of a time before the checkpoint, which has not recorded it; the model of
                that time is gone.
        """
        experiences = [exp_list] if hasattr(exp_list, "dataset") else list(exp_list)
        now = self.clock.train_iterations
        self.evaluations += self._known_evaluations.passed(now)
        known = self._known_evaluations.take(now, experiences)
        if known is not None:
            self.evaluator.last_metric_results = dict(known.metrics)
            self.evaluations.append(known)
            return dict(known.metrics)
        if self.catching_up_batches:
            raise RuntimeError(
                f"the checkpoint knows no evaluation of {describe(experiences)} after {now} mini-batches (stream, "
                "experience, samples): make the same evaluations as the interrupted run, or load() the file instead"
            )
        metrics = super().eval(experiences, **kwargs)
        self.evaluations.append(Evaluation.of(now, experiences, metrics))
        return metrics
