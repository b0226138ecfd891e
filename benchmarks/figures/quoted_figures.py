"""Runs the commands behind the figures that README and pages quote, and compares."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from headstart.benchmarks.figures.register import ROOT, Figure, pages

SHARED = Path(os.environ.get("HEADSTART_SHARED", ROOT.parent / "shared"))


def main(page: str | None = None, minutes: float = float("inf")) -> None:
    """Run every command of the register of figures, and print each quoted number that the results do not confirm.

    Args:
        page: Page whose figures are checked, such as `protocol`; all by default.
        minutes: Commands that take longer are left out.
    """
    known = pages()
    if page is not None and page not in known:
        raise SystemExit(f"--page {page}: there is no such page; the pages are {', '.join(known)}")

    wrong = 0
    for name, (file, register) in known.items():
        for figure in register.figures if page in (None, name) else []:
            if figure.minutes > minutes or not is_possible(figure):
                print(f"{name}: left out ({figure.minutes:g} minutes, needs {figure.needs}): {figure.command}")
                continue
            differences = check(figure, file.read_text(encoding="utf-8"))
            wrong += len(differences)
            print(f"{name}: {'; '.join(differences) or 'confirmed'}: {figure.command}", flush=True)
    if wrong:
        raise SystemExit(f"{wrong} quoted figures differ from what their commands give")


def is_possible(figure: Figure) -> bool:
    """Return whether this machine has what the commands need.

    Args:
        figure: A part of the register.
    """
    return {"shared": SHARED.exists(), "gpu": torch.cuda.is_available(), None: True}[figure.needs]


def check(figure: Figure, page: str) -> list[str]:
    """Run the commands in a folder of their own, and compare what they write with the page.

    Args:
        figure: A part of the register.
        page: The page's text.

    Returns:
        A sentence for each quoted number that differs.
    """
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / "checkout"
        folder.mkdir()
        for part in ("benchmarks", "configs", "docs"):
            (folder / part).symlink_to(ROOT / part)
        if SHARED.exists():
            (folder.parent / "shared").symlink_to(SHARED.resolve())
        try:
            results = _run(figure, folder)
        except subprocess.CalledProcessError as error:
            return [f"{error.cmd[-1]} ended with {error.returncode}: {(error.stdout + error.stderr)[-500:]}"]
    return [sentence for values in figure.values for sentence in values.differences(page, results)]


def _run(figure: Figure, folder: Path) -> Any:  # noqa: ANN401  (any JSON)
    commands = [figure.command] if isinstance(figure.command, str) else figure.command
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in commands:
        words, environment = ["bash", "-c", command], {**os.environ, "PATH": path}
        ended = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=True)

    if figure.file == "stdout":
        return json.loads(ended.stdout[ended.stdout.index("{") :])
    with (folder / figure.file).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream)) if figure.file.endswith(".csv") else json.load(stream)
