"""The folder of one run of `headstart train`: its results, the digest of its configuration, and the lock on it."""

import hashlib
import json
import platform
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

import torch
import yaml

import headstart
from headstart.contract.documents import registry_path
from headstart.modules.arithmetic import TENSOR_FLOAT_32
from headstart.output.errors import UserError, reason_of
from headstart.output.files import alone_in, output_folder, remove_partial, write_together
from headstart.output.printable import say
from headstart.output.version import TRAINING_SCHEMA, git_revision
from headstart.store.json_digest import digest_of

OPTION = "trainer.default_root_dir"
RESULTS = "results.json"
CONFIG = "config.yaml"
# Version of the results of a task that trains one model, and the packages that they depend on.
PACKAGES = ("torch", "torchvision", "pillow", "lightning")


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
    say(f"{ending}. Written:")
    for path in paths:
        say(f"  {path}")


def environment() -> dict[str, Any]:
    """Describe the machine and the revision of a run, which are in no digest of its origin; JSON values."""
    return {
        # These two decide how a processor rounds sums.
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "headstart": headstart.__version__,
        "git": git_revision(),
    }


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
        # The file is compared with values that were read from JSON.
        self.made_from = json.loads(json.dumps(made_from))
        self.identity = digest_of(made_from)
        self.started = time.perf_counter()

        schema = self.document.get("schema")
        if self.has_results and (schema, self.document.get("identity")) != (TRAINING_SCHEMA, self.identity):
            if not overwrite and schema not in (None, TRAINING_SCHEMA):
                self.raise_other_results(f"results of schema {schema}, not {TRAINING_SCHEMA}")
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
            "schema": TRAINING_SCHEMA,
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


def configuration_digest(config: str, *, over_seeds: bool = False) -> str:
    """Return a digest that is the same for configurations with the same results.

    Args:
        config: The whole configuration, YAML.
        over_seeds: Whether it is also the same for configurations that differ in their seed and orderings alone.

    Returns:
        Eight hexadecimal digits.
    """
    content, registry = result_options(config), registry_digest(config)
    if registry is not None:
        content["registry_sha256"] = registry
    if over_seeds:
        content.pop("seed_everything", None)
        for key in ("seed", "orderings", "first_ordering"):
            _data_options(content).pop(key, None)
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]


def result_options(config: str) -> Any:  # noqa: ANN401 - whatever YAML holds
    """Return the options that decide the results, without folders, loggers, and how photos are read and passes divided.

    Args:
        config: The whole configuration, YAML.
    """
    content = yaml.safe_load(config)
    if not isinstance(content, dict):
        return None
    for key in ("results", "task"):
        content.pop(key, None)
    for key in ("default_root_dir", "logger", "enable_progress_bar", "max_time"):
        content["trainer"].pop(key, None)
    for key in ("cache_dir", "num_workers", "workers", "ray", "orderings_at_once"):
        _data_options(content).pop(key, None)
    return content


def registry_digest(config: str) -> str | None:
    """Return a digest of the backbone's registry.

    Args:
        config: The whole configuration, YAML.

    Returns:
        SHA-256 of the file; None if the backbone comes from no registry.
    """
    registry = _data_options(yaml.safe_load(config)).get("backbone", {}).get("registry")
    # A missing file raises an error with the option's name when its entry is needed.
    if registry is None or not (path := registry_path(registry)).is_file():
        return None
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _data_options(content: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the data, of a chosen class or of the one that a task has."""
    data: dict[str, Any] = content.get("data", {})
    options: dict[str, Any] = data.get("init_args", data)
    return options
