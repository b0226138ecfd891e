"""A result names the suite's own commit, or none."""

import re
import subprocess
from pathlib import Path

import pytest

import headstart
from headstart.output import version


def commit(folder: Path, name: str) -> str:
    """Create a repository of a folder with one file, and return its commit."""
    (folder / name).touch()
    author = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
    for command in (["init", "--quiet"], ["add", name], [*author, "commit", "--quiet", "--message=first"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    shown = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True)
    return shown.stdout.strip()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the suite in a folder inside of another one."""
    folder = tmp_path / "environment" / "suite"
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").touch()
    monkeypatch.setattr(version, "ROOT", folder)
    monkeypatch.setattr(headstart, "__version__", "1.2.3")
    return folder


def test_own_checkout_names_its_commit(project: Path) -> None:
    own = commit(project, "pyproject.toml")
    assert re.fullmatch("[0-9a-f]{40}", own)
    assert version.git_revision() == own
    assert version.describe_version() == f"headstart 1.2.3 ({own})"
    (project / "pyproject.toml").write_text("changed")
    assert version.describe_version() == f"headstart 1.2.3 ({own}-dirty)"
