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
NO_CODE = {".venv", ".git", ".ci", "build", "dist", "docs"}


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
    extras = PROJECT["project"]["optional-dependencies"]
    dev = [Requirement(each) for each in extras["dev"]]
    named = [Requirement(each) for requirement in dev for extra in requirement.extras for each in extras[extra]]
    needed = [Requirement(each) for each in PROJECT["project"]["dependencies"]] + dev + named
    for requirement in (each for each in needed if each.name != "headstart"):
        assert Version(normal[requirement.name.lower().replace("_", "-")]) in requirement.specifier


def test_workflows_do_what_anyone_can_do() -> None:
    commands = [step["run"] for workflow in WORKFLOWS for step in steps(workflow) if "run" in step]
    called = {word for command in commands if command.startswith(".ci/run") for word in command.split()[1:]}
    assert called == {"test", "lint", "docs", "demo", "readme", "wheel", "slow", "container", "release"}
    others = {command for command in commands if not command.startswith(".ci/run")}
    assert {command.partition(" ")[0] for command in others} == {"python", "sudo", "gh"}
    assert all(".ci/oldest.py" in command for command in others if command.startswith("python"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_ask_for_little(workflow: Path) -> None:
    content = yaml.safe_load(workflow.read_text())
    jobs = content["jobs"]
    assert content["permissions"] == {"contents": "read"}
    assert "group" in content["concurrency"]
    assert all(need in jobs for job in jobs.values() for need in [job.get("needs", next(iter(jobs)))])
    for step in steps(workflow):
        assert ("uses" in step) != ("run" in step)
        if step.get("uses", "").startswith("actions/setup-python"):
            cached = step["with"].get("cache-dependency-path", "").split()
            assert all((ROOT / path).is_file() for path in cached)


def test_newest_versions_are_tested_every_week() -> None:
    # YAML takes the key `on` for true.
    content = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yaml").read_text())
    assert content[True]["schedule"]
    scheduled = {name for name, job in content["jobs"].items() if job.get("if") != "github.event_name != 'schedule'"}
    assert scheduled == {"newest", "slow"}


def test_only_publishing_has_the_right_to_identify() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yaml").read_text())["jobs"]
    rights = {name: job["permissions"] for name, job in jobs.items() if "permissions" in job}
    assert rights == {"publish": {"id-token": "write"}, "notes": {"contents": "write"}}


def test_tested_versions_of_python() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yaml").read_text())["jobs"]
    matrix = jobs["test"]["strategy"]["matrix"]["include"]
    setup = next(step for step in jobs["newest"]["steps"] if "setup-python" in step.get("uses", ""))
    versions = {Version(entry["python"]) for entry in matrix} | {Version(setup["with"]["python-version"])}
    assert f">={min(versions)}" == PROJECT["project"]["requires-python"]
    named = [name.rpartition(" ")[2] for name in PROJECT["project"]["classifiers"] if ":: Python :: 3." in name]
    assert sorted(map(Version, named)) == sorted(versions)
    constraints = {entry["versions"]: entry["constraints"] for entry in matrix}
    assert constraints == {"pinned": "constraints.txt", "oldest": "oldest.txt"}


def test_an_unknown_step_is_refused_before_anything_is_set_up() -> None:
    run = subprocess.run([ROOT / ".ci" / "run", "tests"], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert run.stderr == "tests: there is test, lint, docs, demo, readme, wheel, slow, container and release\n"


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_alone_lists_every_target() -> None:
    text = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    assert phony is not None
    command = ["make", "--no-print-directory"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split()[1] for line in shown] == phony[1].split()
    assert all(len(line.split()) > 2 and line.endswith(".") for line in shown)


def test_hooks_before_a_commit_are_quick_and_need_no_host() -> None:
    repositories = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [repository["repo"] for repository in repositories] == ["local"]
    assert all(hook["entry"].startswith(".venv/bin/ruff ") for hook in repositories[0]["hooks"])


@pytest.mark.parametrize("template", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yaml")), ids=lambda p: p.stem)
def test_issue_templates_have_the_form_that_github_reads(template: Path) -> None:
    content = yaml.safe_load(template.read_text())
    assert content["name"]
    assert content["description"]
    fields = content["body"]
    assert {field["type"] for field in fields} <= {"textarea", "input", "markdown"}
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(field["attributes"]["label"] for field in fields)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs a checkout by git")
def test_the_assumed_address_stands_once() -> None:
    urls = PROJECT["project"]["urls"]
    assert {"Documentation", "Repository", "Changelog", "Issues"} <= set(urls)
    assert all(urls[name].startswith(urls["Repository"]) for name in ("Changelog", "Issues"))
    owner = urls["Repository"].split("/")[-2]
    listed = subprocess.run(["git", "grep", "-l", owner], cwd=ROOT, capture_output=True, text=True, check=False)
    assert listed.stdout.split() == ["pyproject.toml"]


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


NOTES = load(".ci/release_notes.py")


def test_release_notes_are_the_section_of_the_version() -> None:
    notes = NOTES.release_notes(f"v{headstart.__version__}")
    after = (ROOT / "CHANGELOG.md").read_text().partition(f"## [{headstart.__version__}]")[2]
    assert notes.strip()
    assert notes.strip() in after
    assert "## [" not in notes


@pytest.fixture
def release(tmp_path: Path) -> Path:
    (tmp_path / "__init__.py").write_text('__version__ = "1.2.0"\n')
    (tmp_path / "CITATION.cff").write_text("version: 1.2.0\ndate-released: 2027-01-02\n")
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [Unreleased]\n\n- later\n\n## [1.2.0] - 2027-01-02\n\n### Added\n\n- this\n\n"
        "## [1.1.0] - 2026-01-02\n\n- before\n\n[1.2.0]: https://example.org\n"
    )
    return tmp_path


def test_release_notes_of_a_later_version(release: Path) -> None:
    assert NOTES.release_notes("v1.2.0", release) == "### Added\n\n- this\n"


@pytest.mark.parametrize(
    ("tag", "file", "old", "new", "message"),
    [
        ("v1.3.0", "CHANGELOG.md", "", "", "tag: v1.3.0 does not match version 1.2.0 of __init__.py; use v1.2.0"),
        ("1.2.0", "CHANGELOG.md", "", "", "tag: 1.2.0 does not match version 1.2.0 of __init__.py; use v1.2.0"),
        (
            "v1.2.0",
            "CITATION.cff",
            "1.2.0",
            "1.1.0",
            "tag: v1.2.0 does not match version 1.1.0 of CITATION.cff; use v1.1.0",
        ),
        (
            "v1.2.0",
            "CHANGELOG.md",
            "## [1.2.0]",
            "## [1.1.9]",
            "CHANGELOG.md: there is no section [1.2.0]; rename [Unreleased]",
        ),
        (
            "v1.2.0",
            "CITATION.cff",
            "01-02",
            "01-03",
            "CHANGELOG.md: 1.2.0 is of 2027-01-02, and of 2027-01-03 in CITATION.cff",
        ),
    ],
)
def test_a_release_of_files_that_disagree_is_an_error(
    tag: str, file: str, old: str, new: str, message: str, release: Path
) -> None:
    (release / file).write_text((release / file).read_text().replace(old, new) if old else (release / file).read_text())
    with pytest.raises(ValueError, match=re.escape(message)):
        NOTES.release_notes(tag, release)
