"""Stimuli that are generated so that a portal can be tried without any download."""

import subprocess
import sys
from pathlib import Path

from headstart.output.errors import UserError
from headstart.portal.settings import Settings

PUBLIC_COUNT, HELD_OUT_COUNT = 120, 60


def write_stimuli(settings: Settings) -> None:
    """Write the stimuli of a demonstration and their catalogs, unless the catalogs exist.

    Args:
        settings: The portal's settings, with `datasets` and `catalog`.

    Raises:
        UserError: The settings lack one of them, or it cannot be written.
    """
    if settings.datasets is None or settings.catalog is None:
        raise UserError("demonstration: needs the settings datasets and catalog, where drawings are written")
    datasets = Path(settings.datasets).expanduser().absolute()
    _write_dataset(datasets / "drawn_pets", settings.catalog, PUBLIC_COUNT, seed=0)
    if settings.held_out_catalog is not None:
        _write_dataset(datasets / "other_pets", settings.held_out_catalog, HELD_OUT_COUNT, seed=1)


def _write_dataset(folder: Path, catalog: str, count: int, seed: int) -> None:
    target = Path(catalog).expanduser().absolute()
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
