"""Finished runs of headstart train, read from their folders."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from headstart.metrics.sample_efficiency.curves import Curves
from headstart.output.errors import UserError, broken_yaml

FILES = ("results.json", "curves.npz", "config.yaml")
# What may differ between runs that are joined.
ORDERINGS = ("orderings", "first_ordering")
# What commands need of `results.json`, of its protocol, and of the configuration of the methods.
DOCUMENT = ("complete", "stopped_because")
PROTOCOL = ("dataset", "backbone", "weights", "batch_size", *ORDERINGS)
MODEL = ("baseline", "methods")
# That in C, ten times as fast, where PyYAML was built with it.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        folder: Its folder.
        document: The content of `results.json`.
        curves: Its traces.
        protocol: What was fed, of the document.
        model: The methods, of the configuration.
        backbone: The backbone, of the configuration.
    """

    folder: Path
    document: dict[str, Any]
    curves: Curves
    protocol: dict[str, Any]
    model: dict[str, Any]
    backbone: dict[str, Any]

    def describe(self, method: str) -> dict[str, Any]:
        """Give what a method is: its provenance, of schema 1 its options.

        Args:
            method: Its name.
        """
        found: dict[str, Any] | None = self.document.get("methods", {}).get(method, {}).get("provenance")
        if found is None:
            found = self.model["baseline"] if method == "baseline" else self.model["methods"][method]
        return found

    @property
    def settings(self) -> dict[str, Any]:
        """The protocol, but for the numbers of the orderings."""
        return {key: value for key, value in self.protocol.items() if key not in ORDERINGS}


def read_runs(patterns: str | Sequence[str]) -> list[Run]:
    """Read the runs that patterns of the shell match, as `find_folders` finds them.

    Raises:
        UserError: A pattern matches nothing, or a folder holds no run.
    """
    return [_read(folder) for folder in find_folders(patterns)]


def find_folders(patterns: str | Sequence[str]) -> list[Path]:
    """Find the folders that patterns of the shell match, of each in the order of their names, none twice.

    What is no folder is passed over; where a pattern has a wildcard, so are folders without any file of a run.

    Raises:
        UserError: A pattern matches nothing.
    """
    folders: dict[Path, None] = {}
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        found = [path for path in map(Path, sorted(glob(pattern))) if path.is_dir()]  # noqa: PTH207 - Path.glob takes no absolute pattern
        if has_magic(pattern):
            found = [path for path in found if any((path / name).is_file() for name in FILES)]
        if not found:
            raise UserError(f"runs: {pattern!r} matches no folder of a run; name folders that headstart train wrote")
        folders |= dict.fromkeys(found)
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


def require_same(runs: Sequence[Run], settings: Sequence[Mapping[str, Any]], allowed: str) -> None:
    """Check that settings of runs agree; a UserError says where one differs from the first, and what may differ."""
    there = settings[0]
    for run, here in zip(runs[1:], settings[1:], strict=True):
        differing = [key for key in {**there, **here} if there.get(key) != here.get(key)]
        if differing:
            pair = f"{str(run.folder)!r} differs from {str(runs[0].folder)!r}"
            raise UserError(f"runs: {pair} in {', '.join(differing)}; {allowed}")


def require_different_orderings(runs: Sequence[Run]) -> None:
    """Check that no ordering comes twice; a UserError names those that do."""
    numbers = np.concatenate([run.curves.orderings for run in runs])
    twice = np.unique(numbers[np.bincount(numbers)[numbers] > 1])
    if len(twice):
        raise UserError(f"runs: the orderings {', '.join(map(str, twice))} come more than once; give each run once")
