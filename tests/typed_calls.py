"""Calls that mypy must refuse, checked by `mypy` in `make test`: an ignore that is not needed is an error there."""

from typing_extensions import assert_type

from avalanche_f2ocl import F2OCLConfig, F2OCLModel, F2OCLStrategy, FrozenBackbone, FrozenModel, ViTNCM
from avalanche_f2ocl.baselines import ER, L2P, RandomPrompt


def wrong_names() -> None:
    F2OCLStrategy.best(promt_length=3)  # type: ignore[call-arg]
    F2OCLStrategy.paper(promt_length=3)  # type: ignore[call-arg]
    F2OCLStrategy(promt_length=3)  # type: ignore[call-arg]
    F2OCLModel.best("micro_vit", promt_length=3)  # type: ignore[call-arg]
    F2OCLModel("micro_vit", promt_length=3)  # type: ignore[call-arg]
    ViTNCM(prompt_length=3)  # type: ignore[call-arg]
    L2P(poolsize=3)  # type: ignore[call-arg]
    ER(memsize=3)  # type: ignore[call-arg]


def wrong_values() -> None:
    F2OCLStrategy.best(head="rigde")  # type: ignore[arg-type]
    F2OCLStrategy.best(train_mb_size="10")  # type: ignore[arg-type]
    F2OCLModel.best("micro_vit", head_features="layer")  # type: ignore[arg-type]
    F2OCLConfig(negatives="every")  # type: ignore[arg-type]
    FrozenBackbone(head_features="z")  # type: ignore[arg-type]
    FrozenModel("micro_vit", metric="l1")  # type: ignore[arg-type]
    L2P(mask_logits="some")  # type: ignore[arg-type]


def right() -> None:
    strategy = F2OCLStrategy.best(backbone="micro_vit", head="lda", passes=2, train_mb_size=5, on_bad_input="skip")
    assert_type(strategy, F2OCLStrategy)
    assert_type(strategy.model.config.passes, int)
    assert_type(RandomPrompt.best(prompt_length=2), RandomPrompt)
    assert_type(F2OCLModel("micro_vit", config=F2OCLConfig(), capture=False, compile=True), F2OCLModel)
