"""The files around the code: the packages, the workflow, the commands of the Makefile, the citation."""

import re
import shutil
import subprocess
import tomllib
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

import headstart
from headstart.output.import_paths import SUITE_NAMES
from headstart.tests.material.root import ROOT, load_file, require_checkout

require_checkout()

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
NOT_INSTALLED = {("benchmarks",), ("docs",), ("tests",)}
NO_CODE = {".venv", ".git", ".ci", "build", "dist", "docs"}


def test_every_folder_of_code_is_a_package_of_the_wheel() -> None:
    folders = {path.parent.relative_to(ROOT) for path in ROOT.rglob("*.py") if not set(path.parts) & NO_CODE}
    ours = {folder for folder in folders if folder.parts[:1] not in NOT_INSTALLED}
    packages = {".".join(("headstart", *folder.parts)) for folder in ours}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == packages
    assert all((ROOT / folder / "__init__.py").is_file() for folder in ours)


def test_names_of_the_top_level_are_the_suites_own() -> None:
    folders = {path.parent.name for path in ROOT.glob("*/*.py")} | {"tests"}
    files = {path.stem for path in ROOT.glob("*.py")}
    assert {name for name in folders | files if not name.startswith(".")} - NO_CODE == SUITE_NAMES


def test_oldest_versions_are_the_bounds_of_the_project() -> None:
    extras = PROJECT["project"]["optional-dependencies"].values()
    requirements = [Requirement(each) for group in (PROJECT["project"]["dependencies"], *extras) for each in group]
    bounds = {each.name: part.version for each in requirements for part in each.specifier if part.operator == ">="}
    assert dict(line.split("==") for line in load_file(".ci/oldest.py").oldest()) == bounds


def test_workflows_do_what_anyone_can_do_and_ask_for_little() -> None:
    contents = [yaml.safe_load(path.read_text()) for path in (ROOT / ".github" / "workflows").glob("*.yaml")]
    assert [content["permissions"] for content in contents] == [{"contents": "read"}] * len(contents)
    steps = [step for content in contents for job in content["jobs"].values() for step in job["steps"]]
    commands = [step["run"] for step in steps if "run" in step]
    called = {word for command in commands if command.startswith(".ci/run") for word in command.split()[1:]}
    assert called == {"test", "lint", "docs", "demo", "readme", "wheel_tests", "slow", "container", "release"}


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_alone_lists_every_target() -> None:
    text = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    assert phony is not None
    command = ["make", "--no-print-directory"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split()[1] for line in shown] == phony[1].split()
    assert all(len(line.split()) > 2 and line.endswith(".") for line in shown)


def test_the_version_is_cited_and_has_its_changes() -> None:
    citation, changelog = (ROOT / name for name in ("CITATION.cff", "CHANGELOG.md"))
    stated = yaml.safe_load(citation.read_text())
    assert stated["version"] == headstart.__version__
    assert f"\n## [{stated['version']}] - {stated['date-released']}\n" in changelog.read_text()
