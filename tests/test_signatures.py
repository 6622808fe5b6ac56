import inspect
import re
from dataclasses import fields
from typing import get_type_hints

import pytest

import avalanche_f2ocl
from avalanche_f2ocl import BeginBatchPlugin, F2OCLConfig, F2OCLModel, F2OCLStrategy, FrozenModel, ViTNCM
from avalanche_f2ocl.baselines import (
    ER,
    L2P,
    MVP,
    CODAPrompt,
    DualPrompt,
    FrozenBackbone,
    LinearStrategy,
    LwF,
    RandomPrompt,
    SinglePrompt,
)
from avalanche_f2ocl.config import PRESETS
from avalanche_f2ocl.signatures import option_defaults, spelled_out
from avalanche_f2ocl.strategies.base import BaseStrategy

MODELS = [F2OCLModel, FrozenModel]
STRATEGIES = [
    F2OCLStrategy, FrozenBackbone, ViTNCM, RandomPrompt, LinearStrategy, ER, LwF, L2P, DualPrompt, SinglePrompt,
    CODAPrompt, MVP,
]  # fmt: skip


@pytest.mark.parametrize("cls", [*MODELS, *STRATEGIES])
def test_every_option_is_there_with_the_type_and_default_of_its_one_declaration(cls):
    parameters = inspect.signature(cls).parameters
    config_type = getattr(cls, "model_type", cls).config_type
    hints = get_type_hints(config_type)
    for field in fields(config_type):
        assert parameters[field.name].default == field.default, field.name
        assert parameters[field.name].annotation == hints[field.name], field.name
        assert parameters[field.name].kind is inspect.Parameter.KEYWORD_ONLY
    assert parameters["config"].annotation == config_type | None
    assert {"backbone", "weights", "image_size", "device"} <= parameters.keys()
    assert all(p.kind is not p.VAR_KEYWORD for p in parameters.values())


@pytest.mark.parametrize("cls", STRATEGIES)
def test_the_loops_parameters_are_those_of_the_base(cls):
    own = inspect.signature(BaseStrategy).parameters
    parameters = inspect.signature(cls).parameters
    for name, parameter in own.items():
        if parameter.kind is parameter.KEYWORD_ONLY:
            assert parameters[name].default == parameter.default
            assert parameters[name].annotation == parameter.annotation, name


@pytest.mark.parametrize("cls", [F2OCLModel, F2OCLStrategy])
@pytest.mark.parametrize("preset", PRESETS)
def test_presets_show_their_own_defaults(cls, preset):
    if not hasattr(cls, preset):
        pytest.skip("models have no literal reading of the paper")
    parameters, plain = inspect.signature(getattr(cls, preset)).parameters, inspect.signature(cls).parameters
    assert parameters.keys() == plain.keys()
    for name, parameter in parameters.items():
        assert parameter.default == PRESETS[preset].get(name, plain[name].default), name


def test_users_subclasses_keep_theirs():
    class Mine(F2OCLStrategy):
        def __init__(self, *, mine: int = 3, **options):
            super().__init__(**options)

    assert list(inspect.signature(Mine).parameters) == ["mine", "options"]
    assert Mine(backbone="micro_vit", evaluator=None, prompt_length=2).model.config.prompt_length == 2

    class Silent(F2OCLStrategy):
        pass

    assert inspect.signature(Silent) == inspect.signature(F2OCLStrategy)


def test_a_function_without_options_is_as_it_was():
    function = BeginBatchPlugin.before_training_iteration
    assert spelled_out(function, {}) == inspect.signature(function)
    assert option_defaults(F2OCLModel)["lr"] == F2OCLConfig().lr


@pytest.mark.parametrize("name", sorted({*avalanche_f2ocl.__all__} - {"UNKNOWN"}))
def test_every_exported_name_shows_an_example_and_explains_its_parameters(name):
    exported = getattr(avalanche_f2ocl, name)
    documented = inspect.getdoc(exported)
    assert ">>> " in documented
    if inspect.isfunction(exported):
        explained = re.findall(r"^    [*\w, ]+:", documented, re.MULTILINE)
        names = {word for line in explained for word in re.findall(r"\w+", line)}
        assert set(inspect.signature(exported).parameters) <= names
