"""The folder of one run of `headstart train`: its configuration, its results, and the lock on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, NoReturn

import torch

from headstart.output.errors import UserError, reason_of
from headstart.output.files import alone_in, output_folder, write_together
from headstart.output.printable import say
from headstart.output.version import git_revision

OPTION = "trainer.default_root_dir"
RESULTS = "results.json"
CONFIG = "config.yaml"


class RunFolder:
    """Writes the files of a run, and reads those of an earlier one.

    Args:
        path: The folder, which need not exist.
        config: The whole configuration, YAML.
        overwrite: Whether to replace results of another origin.

    Attributes:
        document: Content of results.json as the folder has it; empty where it has none, or a damaged one.

    Raises:
        UserError: The folder cannot be written.
    """

    def __init__(self, path: Path, config: str, overwrite: bool) -> None:
        self.path = output_folder(OPTION, path)
        self.config, self.overwrite = config, overwrite
        self.document: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            document = json.loads((self.path / RESULTS).read_text(encoding="utf-8"))
            self.document = document if isinstance(document, dict) else {}

    @property
    def has_results(self) -> bool:
        """Whether the folder has results, which may be damaged."""
        return (self.path / RESULTS).exists()

    def raise_other_results(self, which: str) -> NoReturn:
        """Raise a UserError because the folder holds results of another origin.

        Args:
            which: Describes them.
        """
        raise UserError(
            f"{OPTION}: {str(self.path)!r} holds {which}; choose another folder, or replace them with "
            "--results.overwrite=true"
        )

    def locked(self) -> AbstractContextManager[None]:
        """Lock the folder; a UserError is raised if another process writes to it."""
        return alone_in(OPTION, self.path)

    def write(self, document: Mapping[str, Any], writers: Mapping[str, Callable[[Path], object]]) -> list[Path]:
        """Write the configuration, the results and further files, which appear together.

        Args:
            document: Content of results.json.
            writers: Functions that write further files, by their names.

        Returns:
            The files.

        Raises:
            UserError: The folder cannot be written.
        """
        text = json.dumps(document, indent=1, allow_nan=False) + "\n"
        files = {
            CONFIG: lambda path: path.write_text(self.config, encoding="utf-8"),
            **writers,
            RESULTS: lambda path: path.write_text(text, encoding="utf-8"),
        }
        try:
            return write_together(self.path, files)
        except OSError as error:
            raise_unwritable(self.path, error)


def raise_unwritable(folder: Path, error: Exception) -> NoReturn:
    """Raise a UserError because a run's folder cannot be written.

    Args:
        folder: The folder.
        error: The error of the system.
    """
    raise UserError(
        f"{OPTION}: {str(folder)!r} cannot be written ({reason_of(error)}); make room and give the same command, or "
        "choose another folder"
    ) from error


def print_written(ending: str, paths: list[Path]) -> None:
    """Print how a run ended, and the files that it has written."""
    for line in (f"{ending}. Written:", *(f"  {path}" for path in paths)):
        say(line)


def environment() -> dict[str, Any]:
    """Describe where a run ran, as far as no digest of its origin contains it; JSON values."""
    return {
        # They decide how a processor rounds sums.
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "git": git_revision(),
    }
