import ast
from pathlib import Path

import pytest

import avalanche_f2ocl


def test_every_name_is_there_and_typed():
    other_names = {"PromptGrowthPlugin": "BeginBatchPlugin", "ContrastivePromptPlugin": "LossPlugin"}
    for name in avalanche_f2ocl.__all__:
        value = getattr(avalanche_f2ocl, name)
        assert name == "UNKNOWN" or value.__name__ == other_names.get(name, name)
        assert name in dir(avalanche_f2ocl)
    stub = ast.parse(Path(avalanche_f2ocl.__file__).with_suffix(".pyi").read_text())
    imports = {
        alias.asname: node.module for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert imports == {name: f"avalanche_f2ocl.{home}" for name, home in avalanche_f2ocl._HOMES.items()}


def test_other_names_are_not():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        avalanche_f2ocl.nonsense  # noqa: B018
    with pytest.raises(ImportError):
        from avalanche_f2ocl import nonsense  # noqa: F401


@pytest.mark.parametrize(
    "missing, said", [("avalanche", "F2OCLStrategy needs Avalanche.*pip install avalanche-lib"), ("timm", "^none$")]
)
def test_where_avalanche_is_missing_that_is_said(missing, said, monkeypatch):
    def fail(module):
        raise ModuleNotFoundError("none", name=missing)

    monkeypatch.delitem(vars(avalanche_f2ocl), "F2OCLStrategy", raising=False)
    monkeypatch.setattr(avalanche_f2ocl, "import_module", fail)
    with pytest.raises(ModuleNotFoundError, match=said):
        from avalanche_f2ocl import F2OCLStrategy  # noqa: F401
