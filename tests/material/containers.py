"""The portal's container file without a container engine: what it copies, installs, checks and starts."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
import venv
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from headstart.tests.material.root import ROOT

FILE = ROOT / "portal" / "Containerfile"
# An editable installation of the suite, which would lead to the checkout.
SUITE = re.compile(r"(__editable__.*)?headstart|.*\.pth$")


def read_instructions() -> list[tuple[str, str]]:
    """Return the instructions and their arguments, in order."""
    lines = [line for line in FILE.read_text().splitlines() if line and not line.startswith("#")]
    pairs = (line.split(maxsplit=1) for line in "\n".join(lines).replace("\\\n", " ").splitlines())
    return [(name, rest) for name, rest in pairs]


def health_check(port: int) -> list[str]:
    """Return the command that checks the health of a portal at this port."""
    (check,) = [rest for name, rest in read_instructions() if name == "HEALTHCHECK"]
    words: list[str] = json.loads(check.partition("CMD ")[2])
    return [word.replace(":8000/", f":{port}/") for word in words]


@dataclass
class Image:
    """What a container has: files, variables, a command.

    Attributes:
        root: The folder that stands for the root of its files; its `/data` is `data` there.
        folder: Its working folder.
        environment: The variables that it sets.
        command: The command that it starts.
    """

    root: Path
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    command: list[str] = field(default_factory=list)

    def start(self, *command: str, output: IO[str] | int = subprocess.PIPE) -> subprocess.Popen[str]:
        """Start a command in it."""
        data = str(self.root / "data")
        variables = {name: value.replace("/data", data) for name, value in self.environment.items()}
        path = f"{self.root / 'environment' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, **variables, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        environment.pop("PYTHONPATH", None)
        words = [word.replace("/data", data) for word in command]
        # Found by the path of this process, not of the environment that it is given.
        words[0] = shutil.which(words[0], path=path) or words[0]
        return subprocess.Popen(
            words, cwd=self.folder, env=environment, stdout=output, stderr=subprocess.STDOUT, text=True
        )

    def run(self, *command: str) -> str:
        """Run a command in it, and return what it printed."""
        with self.start(*command) as process:
            output, _ = process.communicate(timeout=600)
        assert process.returncode == 0, output
        return output


def make_image(root: Path) -> Image:
    """Do what the file says, in order. What it runs beside the installation is Debian's: a user, and a folder.

    Args:
        root: An empty folder. The new environment in it finds this one's packages, but not the suite.
    """
    image, entry = Image(root, root), list[str]()
    for name, rest in read_instructions():
        match name:
            case "WORKDIR":
                image.folder = root / rest.removeprefix("/")
                image.folder.mkdir(exist_ok=True)
            case "COPY":
                *sources, target = rest.split()
                _copy(sources, image.folder / target)
            case "RUN" if "pip install" in rest:
                _install(image, shlex.split(rest))
            case "ENV":
                variable, _, value = rest.partition("=")
                image.environment[variable] = value
            case "ENTRYPOINT":
                entry = json.loads(rest)
            case "CMD":
                image.command = [*entry, *json.loads(rest)]
    return image


def _copy(sources: list[str], target: Path) -> None:
    for source in sources:
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, target, ignore=shutil.ignore_patterns("__pycache__", ".env"))
        else:
            shutil.copy(ROOT / source, target)


def _install(image: Image, words: list[str]) -> None:
    environment, found = image.root / "environment", image.root / "found"
    venv.create(environment, symlinks=True)
    found.mkdir()
    for folder in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for package in Path(folder).iterdir():
            if not SUITE.match(package.name):
                (found / package.name).symlink_to(package)
    (own,) = environment.glob("lib/python*/site-packages")
    (own / "found.pth").write_text(str(found))
    # What it needs is there, and needs no index.
    image.run("python", "-m", *words, "--no-deps", "--no-build-isolation", "--no-index")
