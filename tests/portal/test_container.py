"""The container file copies all files of the portal, and starts an existing command."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

from headstart.portal.settings import parse_settings
from headstart.tests.material.root import ROOT, require_checkout

require_checkout()

LINES = re.sub(r"\\\n", " ", (ROOT / "portal" / "Containerfile").read_text()).splitlines()
# Prints the files of all modules that the container's commands import.
MODULES = """
import sys
import headstart.__main__
from headstart import evaluate
from headstart.portal import admin, serve
from headstart.portal.work import scoring, worker
for name, module in list(sys.modules.items()):
    print(getattr(module, "__file__", None) or "")
"""


def copied() -> list[tuple[list[str], str]]:
    """Return the copied sources and their targets."""
    return [(line.split()[1:-1], line.split()[-1]) for line in LINES if line.startswith("COPY ")]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the files of the container."""
    folder = tmp_path_factory.mktemp("image") / "headstart"
    folder.mkdir()
    for sources, target in copied():
        for source in sources:
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, folder / target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, folder / target)
    return folder


def test_all_modules_are_copied(image: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(image.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", MODULES]
    done = subprocess.run(command, cwd=image.parent, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    elsewhere = tuple(str(Path(sysconfig.get_path(name)).resolve()) for name in ("stdlib", "platstdlib", "purelib"))
    files = [str(Path(line).resolve()) for line in done.stdout.splitlines() if line]
    ours = [file for file in files if not file.startswith(elsewhere)]
    assert len(ours) > 50
    # An editable installation would load a module that is not copied from the checkout.
    assert [file for file in ours if not file.startswith(str(image.resolve()))] == []


def test_the_container_starts_the_portal() -> None:
    instructions = dict(line.split(" ", 1) for line in LINES if line.startswith(("ENTRYPOINT ", "CMD ")))
    assert json.loads(instructions["ENTRYPOINT"]) == ["headstart"]
    command, *options = json.loads(instructions["CMD"])
    assert command == "portal"
    settings = parse_settings("", [option for option in options if not option.startswith("--config=")])
    # It listens at all addresses of the container, at the port that is exposed and checked for health.
    assert settings.host == "0.0.0.0"
    assert f"EXPOSE {settings.port}" in LINES
    (health,) = [line for line in LINES if line.startswith("HEALTHCHECK ")]
    assert f"127.0.0.1:{settings.port}/health" in health


def test_extra_and_version_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (extra,) = re.findall(r"'\.\[(\w+)\]'", "\n".join(LINES))
    assert extra in project["optional-dependencies"]
    (version,) = re.findall(r"^FROM python:([\d.]+)-slim$", "\n".join(LINES), re.MULTILINE)
    assert project["requires-python"] == f">={version}"
