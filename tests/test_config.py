import pytest

from avalanche_f2ocl.config import F2OCLConfig, FrozenConfig
from avalanche_f2ocl.options import choices

CHOICES = choices(F2OCLConfig)


@pytest.mark.parametrize("name", CHOICES)
def test_a_wrong_choice_is_named_with_what_is_allowed(name):
    with pytest.raises(ValueError, match=f"{name}='nonsense': allowed are {', '.join(map(repr, CHOICES[name]))}"):
        F2OCLConfig(**{name: "nonsense"})


@pytest.mark.parametrize("name", CHOICES)
def test_every_choice_is_accepted(name):
    for value in CHOICES[name]:
        assert getattr(F2OCLConfig(**{"head_features": "z", name: value}), name) == value


@pytest.mark.parametrize(
    "option, error",
    [
        (dict(prompt_length=0), ValueError),
        (dict(prompt_length=2.0), TypeError),
        (dict(passes=-1), ValueError),
        (dict(keys=True), TypeError),
        (dict(lr=0), ValueError),
        (dict(lr=float("nan")), ValueError),
        (dict(lr="0.1"), TypeError),
        (dict(temperature=-0.2), ValueError),
        (dict(key_lr=float("inf")), ValueError),
        (dict(lr_decay=-0.5), ValueError),
        (dict(lr_decay="fast"), TypeError),
        (dict(betas=0.9), TypeError),
        (dict(betas=(0.9, 1.0)), ValueError),
        (dict(exclude_self="yes"), TypeError),
        (dict(seed=0.5), TypeError),
    ],
    ids=str,
)
def test_numbers_out_of_range(option, error):
    (name, value), *_ = option.items()
    with pytest.raises(error, match=f"{name}=.*must be"):
        F2OCLConfig(**option)


def test_prompts_that_carry_the_label_cannot_be_compared():
    with pytest.raises(ValueError, match="head_features='either' does not go with prompt_assignment='label'"):
        F2OCLConfig(prompt_assignment="label")


def test_a_frozen_backbone_has_features_of_one_pass_only():
    allowed = ("q", "layers", "class_tokens", "fused")
    assert choices(FrozenConfig)["head_features"] == allowed and FrozenConfig().head_features == "q"
    with pytest.raises(ValueError, match="head_features='z': allowed are 'q', 'layers', 'class_tokens', 'fused'"):
        FrozenConfig(head_features="z")


@pytest.mark.parametrize("head", ["ncm", "lda"])
def test_a_penalty_is_for_ridge_regression(head):
    with pytest.raises(ValueError, match=f"ridge=1.0: head='{head}' has no penalty"):
        F2OCLConfig(head=head, ridge=1.0)
