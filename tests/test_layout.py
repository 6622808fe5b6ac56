"""Which folder may import which, read from the imports themselves; tests lie where what they test lies."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "avalanche_f2ocl"

MAY_IMPORT = {
    "ground": set(),
    "state": {"ground"},
    "backbone": {"ground"},
    "heads": {"ground", "state", "backbone"},
    "models": {"ground", "state", "backbone", "heads", "datasets"},
    "metrics": {"ground"},
    "datasets": {"ground"},
    "streams": {"ground", "datasets"},
    "strategies": {"ground", "state", "backbone", "heads", "models", "metrics"},
    "baselines": {"ground", "state", "backbone", "heads", "models", "strategies"},
    "evaluation": {"ground", "metrics", "datasets", "streams", "strategies"},
    "rehearsal": {"ground", "models"},
    "app": {"ground", "models", "datasets"},
    "cli": {"ground", "backbone", "models", "datasets", "app"},
    "testing": {
        "ground", "state", "heads", "models", "strategies", "datasets", "streams", "metrics", "rehearsal",
    },
}
"""Downward only. The ground is the modules that lie in no folder."""

WITH_AVALANCHE = {"strategies", "baselines", "streams", "metrics", "evaluation", "testing"}


def imports(path: Path) -> set[str]:
    """Full names of the modules that a file imports, anywhere in it, also for type checkers only."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{path}: imports are absolute"
            # A name may be a module, too.
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def modules(folder: Path) -> dict[str, Path]:
    """Files by full module name."""
    files = sorted(folder.rglob("*.py"))
    parts = {file: file.relative_to(folder.parent).with_suffix("").parts for file in files}
    return {".".join(parts[file]).removesuffix(".__init__"): file for file in files}


def graph(folder: Path) -> dict[str, set[str]]:
    """Modules of a package that each of its modules imports."""
    files = modules(folder)
    return {name: {m for m in imports(file) if m in files and m != name} for name, file in files.items()}


def room(name: str) -> str:
    """The folder of a module; ``"ground"`` for modules beside the folders."""
    parts = name.split(".")[1:]
    return parts[0] if parts and (PACKAGE / parts[0]).is_dir() else "ground"


def circle(edges: dict[str, set[str]]) -> list[str] | None:
    """Modules that import each other in a circle, or None."""
    done: set[str] = set()

    def walk(name: str, way: list[str]) -> list[str] | None:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return None
        found = next((c for other in sorted(edges[name]) if (c := walk(other, [*way, name]))), None)
        done.add(name)
        return found

    return next((c for name in edges if (c := walk(name, []))), None)


def test_every_folder_is_known():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders == set(MAY_IMPORT) - {"ground"}


def test_arrows_point_downward():
    upward = [
        f"{name} -> {other}"
        for name, others in graph(PACKAGE).items()
        for other in others
        if room(other) != room(name) and room(other) not in MAY_IMPORT[room(name)] and other != "avalanche_f2ocl"
    ]
    assert not upward, upward
    # No room is allowed what would close a circle of rooms.
    assert circle(MAY_IMPORT) is None


@pytest.mark.parametrize("package", ["avalanche_f2ocl", "benchmarks"])
def test_there_is_no_circle(package):
    # A folder's __init__ only re-exports what is in it, and is not imported from inside.
    edges = graph(ROOT / package)
    inits = {name for name, file in modules(ROOT / package).items() if file.name == "__init__.py"}
    assert circle({name: others - inits for name, others in edges.items()}) is None


def test_only_avalanches_edges_import_avalanche():
    elsewhere = [
        name
        for name, file in modules(PACKAGE).items()
        if room(name) not in WITH_AVALANCHE and any(m.split(".")[0] == "avalanche" for m in imports(file))
    ]
    assert not elsewhere, elsewhere


def test_the_package_does_not_import_its_benchmarks_or_tests():
    for name, file in modules(PACKAGE).items():
        assert not {m.split(".")[0] for m in imports(file)} & {"benchmarks", "tests", "examples"}, name


def test_the_check_sees_circles_and_arrows(tmp_path):
    (tmp_path / "p").mkdir()
    for name, text in (("a", "import p.b"), ("b", "def f():\n    from p import c"), ("c", "from p.a import x")):
        (tmp_path / "p" / f"{name}.py").write_text(text)
    (tmp_path / "p" / "__init__.py").write_text("")
    edges = graph(tmp_path / "p")
    assert edges["p.b"] == {"p", "p.c"} and circle(edges) == ["p.a", "p.b", "p.c", "p.a"]
    assert circle({"a": {"b"}, "b": set()}) is None


ABOUT_SEVERAL = {
    "surroundings",
    "avalanche_checkpointing",
    "beyond",
    "commands",
    "failed_captures",
    "files_of_version_0_1",
    "from_disk",
    "hostile_files",
    "learning",
    "predict_at_once",
    "replays",
    "speed",
    "streams_of_all_kinds",
}
"""Tests of no one module of their folder."""


@pytest.mark.parametrize("package", ["avalanche_f2ocl", "benchmarks"])
def test_tests_mirror_the_package(package):
    tests = ROOT / "tests" if package == "avalanche_f2ocl" else ROOT / "tests" / package
    for folder in (p.parent for p in (ROOT / package).glob("*/__init__.py")):
        for test in (tests / folder.name).glob("test_*.py"):
            name = test.stem.removeprefix("test_")
            assert name in ABOUT_SEVERAL or (folder / f"{name}.py").exists(), f"{test} mirrors no module"
