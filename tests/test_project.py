"""The files around the code: the packages, the workflow, the commands of the Makefile, the citation."""

import datetime
import importlib.util
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

import headstart
from headstart.output.import_paths import OWN
from headstart.tests.material.root import ROOT, require_checkout

require_checkout()

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
NOT_INSTALLED = {("benchmarks",), ("docs",), ("tests",)}
NO_CODE = {".venv", ".import", ".git", ".ci", "build", "dist", "docs"}


def load(path: str) -> ModuleType:
    """Import a file of a folder that is no package."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def steps(workflow: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(workflow.read_text())["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def test_every_folder_of_code_is_a_package_of_the_wheel() -> None:
    folders = {path.parent.relative_to(ROOT) for path in ROOT.rglob("*.py") if not set(path.parts) & NO_CODE}
    ours = {folder for folder in folders if folder.parts[:1] not in NOT_INSTALLED}
    packages = {".".join(("headstart", *folder.parts)) for folder in ours}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == packages
    assert all((ROOT / folder / "__init__.py").is_file() for folder in ours)


def test_names_of_the_top_level_are_the_suites_own() -> None:
    folders = {path.parent.name for path in ROOT.glob("*/*.py")} | {"tests"}
    files = {path.stem for path in ROOT.glob("*.py")}
    assert {name for name in folders | files if not name.startswith(".")} - NO_CODE == OWN


def test_oldest_versions_are_the_bounds_of_the_project() -> None:
    extras = PROJECT["project"]["optional-dependencies"].values()
    requirements = [Requirement(each) for group in (PROJECT["project"]["dependencies"], *extras) for each in group]
    bounds = {each.name: part.version for each in requirements for part in each.specifier if part.operator == ">="}
    assert dict(line.split("==") for line in load(".ci/oldest.py").oldest()) == bounds


def test_pinned_versions_are_supported() -> None:
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    normal = {name.lower().replace("_", "-"): version for name, version in pinned.items()}
    needed = [*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"]["dev"]]
    for requirement in map(Requirement, needed):
        assert Version(normal[requirement.name.lower().replace("_", "-")]) in requirement.specifier


def test_workflows_do_what_anyone_can_do() -> None:
    commands = [step["run"] for workflow in WORKFLOWS for step in steps(workflow) if "run" in step]
    called = {word for command in commands if command.startswith(".ci/run") for word in command.split()[1:]}
    assert called == {"test", "lint", "demo", "readme", "wheel", "container"}
    prepared = {"python .ci/oldest.py > oldest.txt", "sudo apt-get update && sudo apt-get install --yes postgresql"}
    steps_run = {f".ci/run {step}" for step in ("lint", "test demo readme", "wheel", "container")}
    assert set(commands) - prepared == steps_run


def test_tested_versions_of_python() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yaml").read_text())["jobs"]
    matrix = jobs["test"]["strategy"]["matrix"]["include"]
    versions = [Version(entry["python"]) for entry in matrix]
    assert f">={min(versions)}" == PROJECT["project"]["requires-python"]
    assert {entry["versions"]: entry["constraints"] for entry in matrix} == {
        "pinned": "constraints.txt",
        "oldest": "oldest.txt",
        "newest": "",
    }


def test_an_unknown_step_is_refused_before_anything_is_set_up() -> None:
    run = subprocess.run([ROOT / ".ci" / "run", "tests"], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert run.stderr == "tests: there is test, lint, demo, readme, wheel and container\n"


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_alone_lists_every_target() -> None:
    text = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    assert phony is not None
    command = ["make", "--no-print-directory"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split()[1] for line in shown] == phony[1].split()
    assert all(len(line.split()) > 2 and line.endswith(".") for line in shown)


def test_hooks_before_a_commit_need_no_host() -> None:
    repositories = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [repository["repo"] for repository in repositories] == ["local"]
    assert all(hook["entry"].startswith("make ") for hook in repositories[0]["hooks"])


def test_citation_names_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation)  # what the format requires
    assert citation["version"] == headstart.__version__
    assert citation["license"] == PROJECT["project"]["license"]
    assert isinstance(citation["date-released"], datetime.date)


def test_changelog_ends_with_this_version() -> None:
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert headings[1] == headstart.__version__
