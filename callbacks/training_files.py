"""The folder of a run that trains one model: whose results it holds, and where training goes on."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from headstart.callbacks.run_files import CONFIG, RESULTS
from headstart.modules.arithmetic import TENSOR_FLOAT_32
from headstart.output.errors import UserError, reason_of
from headstart.output.files import alone_in, output_folder, write_together
from headstart.output.printable import say
from headstart.output.version import git_revision
from headstart.store.json_digest import digest_of

SCHEMA = 1
PACKAGES = ("torch", "torchvision", "pillow", "lightning")


class TrainingFiles:
    """Writes the files of a run that trains one model, and finds them again.

    Args:
        folder: The run's folder.
        config: The whole configuration, YAML.
        made_from: Everything that decides the result, JSON values.
        overwrite: Replace results of another origin that lie in the folder.

    Raises:
        UserError: The folder cannot be written, or holds results of another origin.
    """

    def __init__(self, folder: Path, config: str, made_from: Mapping[str, Any], overwrite: bool) -> None:
        self.folder = output_folder("trainer.default_root_dir", folder)
        self.config = config
        # As it is read again.
        self.made_from = json.loads(json.dumps(made_from))
        self.identity = digest_of(made_from)
        self.started = time.perf_counter()
        self.known = _read(self.folder / RESULTS)
        if self.known.get("identity") != self.identity and (self.folder / RESULTS).exists():
            if not overwrite:
                before = self.known.get("made_from", {})
                differing = [key for key, value in self.made_from.items() if before.get(key) != value]
                raise UserError(
                    f"trainer.default_root_dir: {str(self.folder)!r} holds other results "
                    f"({', '.join(differing) or 'not of this task'} differ); choose another folder, or replace them "
                    "with --results.overwrite=true"
                )
            self.known = {}

    @property
    def checkpoint(self) -> Path:
        """Where the state of training is kept while it goes on."""
        return self.folder / f"{self.identity[:16]}.ckpt"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from the folder."""
        with alone_in("trainer.default_root_dir", self.folder):
            yield

    def write(self, document: Mapping[str, Any], writers: Mapping[str, Callable[[Path], object]]) -> dict[str, Any]:
        """Write the results, which appear together, and remove what training went on from.

        Args:
            document: The results.
            writers: What writes further files, by their names.

        Returns:
            The content of results.json.

        Raises:
            UserError: The folder cannot be written.
        """
        whole = {
            "schema": SCHEMA,
            "complete": True,
            "identity": self.identity,
            **document,
            "made_from": self.made_from,
            "environment": environment(),
            "times": {"seconds": round(time.perf_counter() - self.started, 3), **document.get("times", {})},
        }
        text = json.dumps(whole, indent=1, allow_nan=False) + "\n"
        files = {
            **writers,
            CONFIG: lambda path: path.write_text(self.config, encoding="utf-8"),
            RESULTS: lambda path: path.write_text(text, encoding="utf-8"),
        }
        try:
            paths = write_together(self.folder, files)
        except OSError as error:
            raise UserError(
                f"trainer.default_root_dir: {str(self.folder)!r} cannot be written ({reason_of(error)}); make room and "
                "give the same command, or choose another folder"
            ) from error
        for file in (self.checkpoint, self.checkpoint.with_suffix(".partial")):
            file.unlink(missing_ok=True)
        say("Complete. Written:")
        for path in paths:
            say(f"  {path}")
        return whole


def versions() -> dict[str, Any]:
    """Give what numbers depend on beside what is told of data and code: packages, and how products are rounded."""
    return {**{package: version(package) for package in PACKAGES}, "tensor_float_32": TENSOR_FLOAT_32}


def environment() -> dict[str, Any]:
    """Tell where a run ran, as far as no identity holds it."""
    return {
        "python": platform.python_version(),
        "processor": platform.processor() or platform.machine(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "git": git_revision(),
    }


def _read(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        document = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(document, dict):
            return document
    return {}
