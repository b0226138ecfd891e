"""Where stimuli lie, and those that are drawn so that a portal can be tried without any download."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from headstart.contract.stimulus_files import ROOT_VARIABLE
from headstart.output.errors import UserError
from headstart.portal.settings import Settings

SHOWN, HELD_OUT = 120, 60


def find_datasets(settings: Settings) -> Path | None:
    """Give the folder of the data sets that the settings name; None where they leave it to the environment.

    Raises:
        UserError: There is none: each submission would fail.
    """
    if settings.datasets is None:
        return None
    folder = Path(settings.datasets).expanduser().absolute()
    if not folder.is_dir():
        raise UserError(f"datasets: {settings.datasets!r} is no folder; name the one that data sets are in")
    return folder


def use_datasets(settings: Settings) -> None:
    """Have the data sets of stimuli found in the folder that the settings name; a UserError where there is none."""
    folder = find_datasets(settings)
    if folder is not None:
        os.environ[ROOT_VARIABLE] = str(folder)


def draw_stimuli(settings: Settings) -> None:
    """Draw the stimuli of a demonstration, and write their catalogs, where those are not there.

    Args:
        settings: The portal's, with `datasets` and `catalog`.

    Raises:
        UserError: They name no such place, or it cannot be written.
    """
    if settings.datasets is None or settings.catalog is None:
        raise UserError("demonstration: needs datasets and catalog, which say where drawings go")
    _draw(Path(settings.datasets), "drawn_pets", settings.catalog, SHOWN, seed=0)
    if settings.held_out_catalog is not None:
        _draw(Path(settings.datasets), "other_pets", settings.held_out_catalog, HELD_OUT, seed=1)


def _draw(datasets: Path, dataset: str, catalog: str, count: int, seed: int) -> None:
    folder, target = datasets.expanduser().absolute() / dataset, Path(catalog).expanduser().absolute()
    if target.exists():
        return
    photos = ("--photos=headstart.datamodules.DrawnPets", f"--photos.init_args.drawing_seed={seed}")
    _run("write-photos", str(folder), f"--count={count}", *photos)
    _run("write-catalog", str(folder), f"--output={target}")


def _run(name: str, *options: str) -> None:
    """Run a command of the suite."""
    command = [sys.executable, "-P", "-m", "headstart", name, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = " ".join(done.stderr.split()).removeprefix("error: ")
        raise UserError(f"demonstration: stimuli cannot be drawn ({reason})")
