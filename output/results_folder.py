"""The folder of a command's results, with the options for it that commands share."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from headstart.output.dashboard import Dashboard, RunRecord, Tables, begin_run, check_dashboard, log_files, scalars
from headstart.output.errors import UserError, explain_write_errors
from headstart.output.files import encode, output_folder, write_together
from headstart.output.markup import csv_text
from headstart.output.printable import print_written, say

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FigureFormat = Literal["png", "pdf", "svg"]
FIGURE_FORMATS: list[FigureFormat] = ["png"]


class ResultsFolder:
    """The folder that a command writes its results to.

    A command passes its `**options` on to this class, or to a subclass. All other arguments that it does not pass
    become options of the command, with the types, defaults and help of this class.

    Args:
        default: Folder if `output` is None.
        names: Names of the files; the first is the JSON document, which describes the configuration.
        output: Folder for the results; by default one in `runs` named after the command.
        overwrite: Replace results of another configuration that lie in the folder.

    Attributes:
        option: Name of the option that chooses the folder.
        path: The folder; writing creates it.
        written: The files that were written.

    Raises:
        UserError: The folder cannot be written.
    """

    option = "output"

    def __init__(self, default: str, names: Sequence[str], output: str | None = None, overwrite: bool = False) -> None:
        self.path = output_folder(self.option, default if output is None else output)
        self.names = names
        self.overwrite = overwrite
        self.written: list[Path] = []

    def check_configuration(self, made_from: Mapping[str, Any]) -> None:
        """Raise an error if the folder holds results of another configuration, unless `overwrite` is set.

        Args:
            made_from: JSON values that determine the results, by their paths in the document, such as
                `digests/catalog`. None also stands for a missing key, and a list also for the keys of an object.

        Raises:
            UserError: One of the files exists, but the document is missing or has other values.
        """
        existing = [path for path in (self.path / name for name in self.names) if path.exists()]
        if self.overwrite or not existing:
            return
        path = self.path / self.names[0]
        try:
            # Reading a pipe would block.
            document = json.loads(path.read_text() if path.is_file() else "")
            differing = ", ".join(key for key, value in made_from.items() if not _has(document, key.split("/"), value))
        except (OSError, ValueError):
            differing = f"no {path.name} says which"
        if differing:
            raise UserError(
                f"{self.option}: {str(existing[0])!r} holds results of another configuration ({differing}); choose "
                "another folder, or replace them with --overwrite=true"
            )

    def write(
        self,
        document: Mapping[str, Any],
        tables: Tables | None = None,
        texts: Mapping[str, str] | None = None,
        figures: Mapping[str, Figure] | None = None,
        figure_formats: Sequence[FigureFormat] = FIGURE_FORMATS,
    ) -> None:
        """Write all files or, if one fails, none; the document appears last.

        Args:
            document: Content of the first of `names`.
            tables: Columns and rows of CSV files, by name without the suffix.
            texts: Further texts, such as reports in Markdown or LaTeX, by file name.
            figures: Figures, by name without the suffix.
            figure_formats: File formats of the figures.

        Raises:
            UserError: The folder cannot be written.
        """
        contents = {f"{name}.csv": csv_text(columns, rows) for name, (columns, rows) in (tables or {}).items()}
        contents |= texts or {}
        writers: dict[str, Callable[[Path], object]] = {}

        if figures:
            # matplotlib is slow to import.
            from headstart.output.figures import writers as figure_writers

            for name, figure in figures.items():
                writers |= figure_writers(name, figure, figure_formats)
        for name, text in contents.items():
            writers[name] = partial(Path.write_bytes, data=encode(text))
        writers[self.names[0]] = partial(_write_json, document)

        with self.writable():
            self.written += write_together(self.path, writers)
            self.remove_other_formats(figures or {}, figure_formats)

    def remove_other_formats(self, figures: Iterable[str], figure_formats: Sequence[FigureFormat]) -> None:
        """Remove the figures of overwritten results in formats that were not written again.

        Args:
            figures: Names of the figures without the suffix.
            figure_formats: The formats that were written.
        """
        if self.overwrite:
            for name, other in product(figures, set(get_args(FigureFormat)) - set(figure_formats)):
                (self.path / f"{name}.{other}").unlink(missing_ok=True)

    def writable(self) -> AbstractContextManager[None]:
        """Convert an OSError in the context, such as that of a full disk, to a UserError that names the folder."""
        return explain_write_errors(f"{self.option}: {str(self.path)!r}", "choose another folder")

    def print_written(self) -> None:
        """Print the paths of the files that were written."""
        print_written(self.written)


class DashboardResults(ResultsFolder):
    """A folder of results that are also logged to Weights & Biases.

    Args:
        default: As for `ResultsFolder`.
        names: As for `ResultsFolder`.
        logger: Whether to mirror the result in Weights & Biases.
        dashboard: Where it is mirrored.
        **options: Options of `ResultsFolder`.

    Raises:
        UserError: The folder cannot be written, or the dashboard cannot be used.
    """

    def __init__(
        self,
        default: str,
        names: Sequence[str],
        logger: bool = True,
        dashboard: Dashboard = Dashboard(),  # noqa: B008 - frozen
        **options: Any,
    ) -> None:
        super().__init__(default, names, **options)
        self.dashboard = dashboard if logger else None
        if logger:
            check_dashboard(dashboard)

    def publish(
        self, job_type: str, title: str, config: Mapping[str, Any], document: Mapping[str, Any], tables: Tables
    ) -> None:
        """Log the result and the files that were written as a run, unless `logger` is false.

        A repeated command continues the run of its folder. If Weights & Biases rejects the run, a warning is printed,
        as the files are complete without it.

        Args:
            job_type: Kind of the run in the dashboard.
            title: Name of the run if the options have none.
            config: Configuration of the result.
            document: The result; its top-level numbers, strings and booleans become the run's summary.
            tables: Columns and rows of its tables, by name.
        """
        if self.dashboard is None:
            return
        import wandb

        self.path.mkdir(parents=True, exist_ok=True)
        options = asdict(self.dashboard)
        mode = options.pop("mode")
        record = RunRecord(self.path, [job_type, options, config])
        named = {"name": self.dashboard.name or title, "job_type": job_type, "config": dict(config), "dir": self.path}

        try:
            with begin_run(mode, {**options, **named, **record.options()}) as run:
                record.store(run)
                run.summary.update(scalars(document))
                log_files(run, job_type, job_type, tables, self.written)
                record.store(run, is_published=True)
        except wandb.Error as error:
            reason = str(error).partition("\n")[0]
            hint = "wandb login, --dashboard.mode=offline, or --logger=false"
            say(
                f"warning: logger: Weights & Biases refuses ({reason}); the files above are complete; {hint}",
                sys.stderr,
            )


def _write_json(document: Mapping[str, Any], path: Path) -> None:
    """Write a document piece by piece, since encoding it at once takes six times the memory of the file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        json.dump(document, file, indent=1, allow_nan=False)
        file.write("\n")


def _has(document: Any, path: Sequence[str], value: Any) -> bool:  # noqa: ANN401 - JSON
    """Return whether a JSON document has a value at a path; None is a missing key, a list may be keys of an object."""
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return bool((list(document) if isinstance(document, dict) and isinstance(value, list) else document) == value)
