"""What is said in several places about versions is the same everywhere."""

import configparser
import re
from pathlib import Path

import pytest
import yaml

import avalanche_f2ocl

ROOT = Path(__file__).parents[1]
WORKFLOWS = ROOT / ".github" / "workflows"


@pytest.fixture(scope="module")
def config():
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


def steps(workflow):
    for job in yaml.safe_load((WORKFLOWS / workflow).read_text())["jobs"].values():
        yield from job.get("steps", [])


def test_citation_badge_and_changelog_name_the_version():
    version = avalanche_f2ocl.__version__
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version
    assert f"badge/version-{version}-" in (ROOT / "README.md").read_text()
    assert re.search(r"^## (\S+?),? ", (ROOT / "CHANGELOG.md").read_text() + " ", re.MULTILINE)[1] == version


def test_the_oldest_dependencies_are_the_lower_bounds(config):
    lower = dict(re.findall(r"^([\w-]+)>=(\S+)$", config["options"]["install_requires"], re.MULTILINE))
    oldest = dict(re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "tests" / "oldest.txt").read_text(), re.MULTILINE))
    assert lower.keys() == oldest.keys()
    for name, bound in lower.items():
        assert f"{oldest[name]}.".startswith(f"{bound}."), name


def test_the_tests_run_with_every_version_of_python_that_is_named(config):
    jobs = yaml.safe_load((WORKFLOWS / "tests.yml").read_text())["jobs"]
    tested = jobs["newest"]["strategy"]["matrix"]["python"]
    assert tested == re.findall(r":: (3\.\d+)$", config["metadata"]["classifiers"], re.MULTILINE)
    assert config["options"]["python_requires"] == f">={tested[0]}"


def test_workflows_call_commands_that_are_there():
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    commands = [step["run"] for workflow in ("tests.yml", "release.yml") for step in steps(workflow) if "run" in step]
    made = {command.removeprefix("make ") for command in commands if command.startswith("make ")}
    assert made == {"test", "test-oldest", "docs", "dist", "test-sdist"} and made <= set(targets)
    files = re.findall(r"(?:tests|examples)/[\w./]+", "\n".join(commands))
    assert files and all((ROOT / file).exists() for file in files)
