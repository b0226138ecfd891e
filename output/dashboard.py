"""The mirror of a result in Weights & Biases."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from output.errors import UserError
from output.wandb_mode import Mode, print_destination, quiet_settings, resolve_mode


@dataclass(frozen=True)
class Dashboard:
    """Where a result is mirrored in Weights & Biases.

    Args:
        project: Project in the dashboard.
        entity: User or team that owns the project; the account's default where it is not given.
        name: Name of the run; by default what was done, and with how much.
        group: What lines up in the dashboard; by default nothing does.
        tags: Tags of the run.
        mode: `auto` logs online where an API key is set up and offline elsewhere; the environment variable
            WANDB_MODE wins over it.
    """

    project: str = "headstart"
    entity: str | None = None
    name: str | None = None
    group: str | None = None
    tags: list[str] = field(default_factory=list)
    mode: Mode = "auto"


def check_dashboard(options: Dashboard) -> None:
    """Check what can be told before a result is there, so that a long computation does not end in a refusal.

    Args:
        options: Where it is to be mirrored.

    Raises:
        UserError: wandb is not installed, WANDB_MODE is unknown, or online is asked for without an API key.
    """
    if find_spec("wandb") is None:
        msg = "logger: wandb is not installed; pip install wandb, or go without: --logger=false"
        raise UserError(msg)
    if resolve_mode(options.mode) == "online" != resolve_mode("auto"):
        msg = "dashboard.mode: online, but no API key is set up; wandb login, or --dashboard.mode=offline"
        raise UserError(msg)


def publish_score(
    options: Dashboard,
    job_type: str,
    config: Mapping[str, Any],
    document: Mapping[str, Any],
    names: Sequence[str],
    matrices: Mapping[str, NDArray[np.floating[Any]]],
    files: Sequence[Path],
    folder: Path,
) -> None:
    """Log a score as a run: configuration, scores, matrices, pictures and files.

    Args:
        options: Where it is mirrored.
        job_type: What was done; runs are told apart by it in the dashboard.
        config: What it was done with.
        document: The result; its numbers, texts and truth values become the summary, nested ones as `outer/inner`.
        names: Names of the m models.
        matrices: Similarities `[m, m]` by name; each becomes a table `matrix/<name>`, one row and column per model.
        files: The score's files; PNG files are logged as pictures, too, under their names without the ending.
        folder: Folder of the dashboard's own files.

    Raises:
        UserError: As `check_dashboard`.
    """
    compared = "layers" if "n_layers" in document else "models"
    title = f"{job_type}, {len(names)} {compared}, {document['n_stimuli']} stimuli"
    tables = {
        f"matrix/{name}": (
            ["model", *names],
            [[model, *row] for model, row in zip(names, matrix.tolist(), strict=True)],
        )
        for name, matrix in matrices.items()
    }
    publish(options, job_type, title, config, document, tables, files, folder)


def publish(
    options: Dashboard,
    job_type: str,
    title: str,
    config: Mapping[str, Any],
    document: Mapping[str, Any],
    tables: Mapping[str, tuple[Sequence[str], Sequence[Sequence[Any]]]],
    files: Sequence[Path],
    folder: Path,
) -> None:
    """Log a result as a run: configuration, numbers, tables, pictures and files.

    Where Weights & Biases refuses, a warning says so: the result stands without its mirror.

    Args:
        options: Where it is mirrored.
        job_type: What was done; runs are told apart by it in the dashboard.
        title: Name of the run where the options give none.
        config: What it was done with.
        document: The result; its numbers, texts and truth values become the summary, nested ones as `outer/inner`.
        tables: Names of the columns, and rows, by the table's name.
        files: The result's files; PNG files are logged as pictures, too, under their names without the ending.
        folder: Folder of the dashboard's own files.

    Raises:
        UserError: As `check_dashboard`.
    """
    check_dashboard(options)
    import wandb

    folder.mkdir(parents=True, exist_ok=True)
    try:
        with wandb.init(
            project=options.project,
            entity=options.entity,
            name=options.name or title,
            group=options.group,
            tags=options.tags,
            job_type=job_type,
            dir=folder,
            config=dict(config),
            mode=resolve_mode(options.mode),  # type: ignore[arg-type]  # wandb lists the modes
            settings=quiet_settings(),
        ) as run:
            print_destination(run)
            run.summary.update(dict(_scalars(document)))
            logged = {
                name: wandb.Table(columns=list(columns), data=[list(row) for row in rows])
                for name, (columns, rows) in tables.items()
            }
            pictures = {path.stem: wandb.Image(str(path)) for path in files if path.suffix == ".png"}
            run.log({**logged, **pictures})
            artifact = wandb.Artifact(f"score-{run.id}", type="score")
            for path in files:
                artifact.add_file(str(path))
            run.log_artifact(artifact)
    except wandb.Error as error:
        reason = str(error).partition("\n")[0]
        mend = "wandb login, --dashboard.mode=offline, or --logger=false"
        print(
            f"warning: logger: Weights & Biases refuses ({reason}); the files above are complete; {mend}",
            file=sys.stderr,
        )


def _scalars(document: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Give the numbers, texts and truth values of a document by their paths."""
    for key, value in document.items():
        if isinstance(value, Mapping):
            yield from _scalars(value, f"{prefix}{key}/")
        elif isinstance(value, (str, int, float)):
            yield f"{prefix}{key}", value
