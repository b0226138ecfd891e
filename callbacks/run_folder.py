"""The folder of one run of `headstart train`: its files, the lock on it, and the digest of its configuration."""

import hashlib
import json
import platform
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import torch

import headstart
from headstart.output.errors import UserError, reason_of
from headstart.output.files import alone_in, output_folder, write_together
from headstart.output.printable import say
from headstart.output.shipped_files import load_yaml
from headstart.output.version import git_revision
from headstart.store.json_digest import read_file_of, read_sealed, sealed

OPTION = "trainer.default_root_dir"
RESULTS = "results.json"
CONFIG = "config.yaml"


class RunFolder:
    """The folder of a run of any task: writes its files together, and finds those that it already holds.

    Args:
        path: The folder, which need not exist.
        config: The whole configuration, YAML.
        overwrite: Whether to replace results of another origin.
        schema: Number of the form of the results. Another number is an error.

    Attributes:
        document: Content of results.json as the folder has it; empty where it has none, or a damaged one.

    Raises:
        UserError: The folder cannot be written, or holds results of another schema.
    """

    def __init__(self, path: Path, config: str, overwrite: bool, schema: int) -> None:
        self.path = output_folder(OPTION, path)
        self.config, self.overwrite, self.schema = config, overwrite, schema
        self.started = time.perf_counter()
        self.document: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            self.document = read_sealed(self.path / RESULTS)
        if self.document.get("schema", schema) != schema and not overwrite:
            self.raise_other_results(f"results of schema {self.document['schema']}, not {schema}")

    def require_same(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        """Check that what decided the results in the folder is what decides the run, unless they may be replaced.

        Args:
            before: JSON values that decided them, by name.
            now: Those that decide the run.

        Raises:
            UserError: Some differ.
        """
        plain = json.loads(json.dumps(now))
        differing = [name for name in {**plain, **before} if plain.get(name) != before.get(name)]
        if differing and not self.overwrite:
            self.raise_other_results(f"results of another configuration ({', '.join(differing)})")

    def holds(self, key: Mapping[str, Any]) -> bool:
        """Return whether the folder holds the results of a key, of one that trains a model.

        Args:
            key: JSON values that decide the results.

        Raises:
            UserError: It holds others, which may not be replaced.
        """
        before = self.document.get("key", {} if (self.path / RESULTS).exists() else None)
        if before is None:
            return False
        self.require_same(_by_name(before), _by_name(key))
        return bool(before == json.loads(json.dumps(key)))

    def has(self, name: str) -> bool:
        """Return whether the folder has a file as it was written with the results.

        Args:
            name: Its name.
        """
        with suppress(OSError, ValueError):
            return bool(read_file_of(self.document, self.path / name))
        return False

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

    def write(
        self,
        document: Mapping[str, Any],
        contents: Mapping[str, bytes],
        writers: Mapping[str, Callable[[Path], object]] = {},
    ) -> list[Path]:
        """Write the configuration, the results and further files, which appear together.

        Args:
            document: Content of results.json, without what all tasks have: schema, environment and seconds.
            contents: Further files that readers need, by name; results.json has their digests.
            writers: Functions that write others, such as figures, by name.

        Returns:
            The files.

        Raises:
            UserError: The folder cannot be written.
        """
        contents = {CONFIG: self.config.encode(), **contents}
        whole = {
            "schema": self.schema,
            **document,
            "environment": {**environment(), **document.get("environment", {})},
            "times": {"seconds": round(time.perf_counter() - self.started, 3), **document.get("times", {})},
        }
        self.document = sealed(whole, contents)
        text = json.dumps(self.document, indent=1, allow_nan=False) + "\n"
        contents |= {RESULTS: text.encode()}
        every: dict[str, Callable[[Path], object]] = dict(writers)
        every |= {name: partial(Path.write_bytes, data=each) for name, each in contents.items()}
        try:
            return write_together(self.path, every)
        except OSError as error:
            raise UserError(
                f"{OPTION}: {str(self.path)!r} cannot be written ({reason_of(error)}); make room and give the same "
                "command, or choose another folder"
            ) from error


def _by_name(key: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of both halves of a key, and of what stands beside them, by name."""
    others = {name: each for name, each in key.items() if name not in ("stream", "method")}
    return {**others, **key.get("stream", {}), **key.get("method", {})}


def print_written(ending: str, paths: list[Path]) -> None:
    """Print how a run ended, and the files that it has written."""
    say(f"{ending}. Written:")
    for path in paths:
        say(f"  {path}")


def environment() -> dict[str, Any]:
    """Describe the machine and the revision of a run, which are in no key; JSON values."""
    return {
        "python": platform.python_version(),
        "processor": platform.processor() or platform.machine(),
        # They decide how a processor rounds sums.
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "headstart": headstart.__version__,
        "git": git_revision(),
    }


def configuration_digest(config: str, *, over_seeds: bool = False) -> str:
    """Return a digest that is the same for configurations with the same results.

    Args:
        config: The whole configuration, YAML.
        over_seeds: Whether it is also the same for configurations that differ in their seed and orderings alone.

    Returns:
        Eight hexadecimal digits.
    """
    content = result_options(config)
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
    content = load_yaml(config)
    if not isinstance(content, dict):
        return None
    for key in ("results", "task"):
        content.pop(key, None)
    for key in ("default_root_dir", "logger", "enable_progress_bar", "max_time"):
        content["trainer"].pop(key, None)
    for key in ("cache_dir", "num_workers", "workers", "ray", "orderings_at_once"):
        _data_options(content).pop(key, None)
    return content


def _data_options(content: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the data, of a chosen class or of the one that a task has."""
    data: dict[str, Any] = content.get("data", {})
    options: dict[str, Any] = data.get("init_args", data)
    return options
