"""Finished runs of headstart train, read from their folders."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import Any

import yaml

from headstart.metrics.sample_efficiency.curves import Curves
from headstart.output.errors import UserError, broken_yaml

FILES = ("results.json", "curves.npz", "config.yaml")
BASELINE = "baseline"
# Keys that may differ between runs that are joined.
ORDERINGS = ("orderings", "first_ordering")
# Required keys of `results.json`, of its protocol, and of the configuration of the methods.
DOCUMENT = ("complete", "stopped_because")
PROTOCOL = ("dataset", "backbone", "weights", "batch_size", *ORDERINGS)
MODEL = ("baseline", "methods")
# The loader in C is ten times as fast, but not every PyYAML has it.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        folder: Its folder.
        document: The content of `results.json`.
        curves: Its traces.
        protocol: The protocol in the document.
        model: The methods in the configuration.
        backbone: The backbone in the configuration.
    """

    folder: Path
    document: dict[str, Any]
    curves: Curves
    protocol: dict[str, Any]
    model: dict[str, Any]
    backbone: dict[str, Any]

    def describe(self, method: str) -> dict[str, Any]:
        """Return the provenance of a method; its options in the configuration for schema 1."""
        provenance: dict[str, Any] | None = self.document.get("methods", {}).get(method, {}).get("provenance")
        return self.options(method) if provenance is None else provenance

    def options(self, method: str) -> dict[str, Any]:
        """Return the options of a method in the configuration."""
        options: dict[str, Any] = self.model["baseline"] if method == BASELINE else self.model["methods"][method]
        return options

    @property
    def is_ledger(self) -> bool:
        """Whether the traces come from a ledger."""
        return "unfinished" in self.document

    @property
    def settings(self) -> dict[str, Any]:
        """The protocol without the numbers of the orderings."""
        return {key: value for key, value in self.protocol.items() if key not in ORDERINGS}


def read_runs(patterns: str | Sequence[str]) -> list[Run]:
    """Read the runs in the folders that `find_folders` returns.

    Raises:
        UserError: A pattern matches nothing, or a folder holds no run.
    """
    return [_read(folder) for folder in find_folders(patterns)]


def find_folders(patterns: str | Sequence[str]) -> list[Path]:
    """Return the folders that patterns of the shell match, those of each pattern sorted, without duplicates.

    Files are ignored; for a pattern with a wildcard, folders without any file of a run are ignored, too.

    Raises:
        UserError: A pattern matches nothing.
    """
    folders: dict[Path, None] = {}
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        matches = [path for path in map(Path, sorted(glob(pattern))) if path.is_dir()]  # noqa: PTH207 - Path.glob takes no absolute pattern
        if has_magic(pattern):
            matches = [path for path in matches if any((path / name).is_file() for name in FILES)]
        if not matches:
            raise UserError(f"runs: {pattern!r} matches no folder of a run; name folders that headstart train wrote")
        folders |= dict.fromkeys(matches)
    return list(folders)


def _read(folder: Path) -> Run:
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise UserError(
            f"runs: {str(folder)!r} has no {' and no '.join(missing)}; name folders that headstart train wrote"
        )

    try:
        document = json.loads((folder / "results.json").read_text())
        config = yaml.load((folder / "config.yaml").read_text(), LOADER)
        curves, backbone = Curves.load(folder / "curves.npz"), dict(config["data"]["init_args"]["backbone"])
        run = Run(folder, document, curves, document["protocol"], config["model"], backbone)

        parts = ((document, DOCUMENT), (run.protocol, PROTOCOL), (run.model, MODEL))
        missing = [key for part, keys in parts for key in keys if key not in part]
        missing += ["methods"] * (not isinstance(document.get("methods", {}), dict))
        if missing:
            raise ValueError(f"no {', '.join(missing)}")
        return run
    except (ValueError, KeyError, TypeError, zipfile.BadZipFile, yaml.YAMLError) as error:
        raise UserError(
            f"runs: the files in {str(folder)!r} are damaged ({broken_yaml(error)}); run headstart train again"
        ) from error


def require_same(folders: Sequence[Path], settings: Sequence[Mapping[str, Any]], allowed: str) -> None:
    """Raise a UserError unless settings agree.

    Args:
        folders: Folders of the settings.
        settings: The settings.
        allowed: End of the message, such as the differences that are allowed.
    """
    first = settings[0]
    for folder, other in zip(folders, settings, strict=True):
        differing = [key for key in {**first, **other} if first.get(key) != other.get(key)]
        if differing:
            pair = f"{str(folder)!r} differs from {str(folders[0])!r}"
            raise UserError(f"runs: {pair} in {', '.join(differing)}; {allowed}")
