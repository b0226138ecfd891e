"""The files of a run's folder, written and read."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from headstart.metrics.sample_efficiency.curves import Curves
from headstart.output.errors import UserError, reason_of
from headstart.output.files import write_together
from headstart.output.results_folder import FigureFormat

RESULTS = "results.json"
CONFIG = "config.yaml"


def write_run(
    folder: Path, config: str, curves: Curves, document: dict[str, Any], figure_formats: Sequence[FigureFormat]
) -> list[Path]:
    """Write the files of a run, which appear together.

    Args:
        folder: The run's folder.
        config: Its configuration, YAML.
        curves: Its traces; without learning curves where they were evaluated lazily.
        document: Its results.
        figure_formats: File formats of the figures.

    Returns:
        The files.

    Raises:
        UserError: The folder cannot be written.
    """
    # matplotlib is slow to import.
    from headstart.callbacks.plots import draw_criterion_reached, draw_learning_curves
    from headstart.output.figures import writers

    text, protocol = json.dumps(document, indent=1, allow_nan=False), document["protocol"]
    fed = f"{protocol['dataset']}: {protocol['backbone']} ({Path(protocol['weights']).name})"
    shown = (curves, f"{fed}, batch size {protocol['batch_size']}", document["complete"])
    files: dict[str, Callable[[Path], object]] = {
        CONFIG: lambda path: path.write_text(config),
        "curves.npz": curves.save,
        **({} if curves.is_lazy else writers("learning_curves", draw_learning_curves(*shown), figure_formats)),
        **writers("criterion_reached", draw_criterion_reached(*shown), figure_formats),
        RESULTS: lambda path: path.write_text(text),
    }
    try:
        written = write_together(folder, files)
        if curves.is_lazy:
            # Of results that these take the place of.
            for path in folder.glob("learning_curves.*"):
                path.unlink()
    except OSError as error:
        raise UserError(
            f"trainer.default_root_dir: {str(folder)!r} cannot be written ({reason_of(error)}); the traces are in the "
            "ledger, so make room and give the same command"
        ) from error
    return written


def read_document(results: Path) -> dict[str, Any]:
    """Read the results that lie in a folder; nothing where there are none, or damaged ones.

    Args:
        results: Path of `results.json`.
    """
    with suppress(OSError, ValueError):
        document = json.loads(results.read_text())
        if isinstance(document, dict) and all(isinstance(document.get(key), dict) for key in ("methods", "protocol")):
            return document
    return {}
