"""The folder of a run that trains one model: the origin of its results, and the checkpoint of its training."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from headstart.callbacks.run_folder import RunFolder, environment, print_written
from headstart.modules.arithmetic import TENSOR_FLOAT_32
from headstart.output.files import remove_partial
from headstart.store.json_digest import digest_of

SCHEMA = 1
PACKAGES = ("torch", "torchvision", "pillow", "lightning")


class TrainingFiles(RunFolder):
    """Writes the files of a run that trains one model, and finds them again.

    Args:
        path: The run's folder.
        config: The whole configuration, YAML.
        made_from: Everything that decides the result, JSON values.
        overwrite: Replace results of another origin that lie in the folder.

    Attributes:
        document: Content of results.json, empty where the folder has none of this origin.

    Raises:
        UserError: The folder cannot be written, or holds results of another origin.
    """

    def __init__(self, path: Path, config: str, made_from: Mapping[str, Any], overwrite: bool) -> None:
        super().__init__(path, config, overwrite)
        # As it is read again.
        self.made_from = json.loads(json.dumps(made_from))
        self.identity = digest_of(made_from)
        self.started = time.perf_counter()

        if self.has_results and self.document.get("identity") != self.identity:
            if not overwrite:
                before = self.document.get("made_from", {})
                differing = [key for key, value in self.made_from.items() if before.get(key) != value]
                self.raise_other_results(f"other results ({', '.join(differing) or 'not of this task'} differ)")
            self.document = {}

    @property
    def checkpoint(self) -> Path:
        """File of the state of training until it is finished."""
        return self.path / f"{self.identity[:16]}.ckpt"

    def write_results(self, document: Mapping[str, Any], writers: Mapping[str, Callable[[Path], object]]) -> None:
        """Write the results, which appear together, and remove the checkpoint.

        Args:
            document: The results.
            writers: Functions that write further files, by their names.

        Raises:
            UserError: The folder cannot be written.
        """
        self.document = {
            "schema": SCHEMA,
            "complete": True,
            "identity": self.identity,
            **document,
            "made_from": self.made_from,
            "environment": {
                "python": platform.python_version(),
                "processor": platform.processor() or platform.machine(),
                **environment(),
            },
            "times": {"seconds": round(time.perf_counter() - self.started, 3), **document.get("times", {})},
        }
        paths = self.write(self.document, writers)
        remove_checkpoint(self.checkpoint)
        print_written("Complete", paths)


def remove_checkpoint(file: Path) -> None:
    """Remove the checkpoint of a training, and the partial files that killed processes leave."""
    file.unlink(missing_ok=True)
    remove_partial(file)


def versions() -> dict[str, Any]:
    """Return what results depend on besides data and code: versions of packages, and how products are rounded."""
    return {**{package: version(package) for package in PACKAGES}, "tensor_float_32": TENSOR_FLOAT_32}
