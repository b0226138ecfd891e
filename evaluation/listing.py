"""`evaluate.py list`: what there is to name in options."""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path
from typing import Literal

import datamodules
from contract.documents import read_registry, registry_path
from metrics.similarity.catalogue import SIMILARITY_MEASURES
from metrics.transferability.catalogue import METRICS
from modules.methods.catalogue import METHODS
from output.docstrings import first_line
from output.tables import print_lines

Kind = Literal["methods", "metrics", "measures", "models", "datasets", "configs"]
PROJECT = Path(__file__).parent.parent
# The module of the classes that data sets derive from.
BASE = "photos.photo_source"


def list_choices(kind: Kind, registry: str | None = None) -> dict[str, str]:
    """List what there is to choose from: methods, metrics, measures, models, datasets or configs.

    Args:
        kind: `methods` of train.py, `metrics` of transferability, `measures` of similarity, `models` of the registry,
            `datasets` that photos come from, or `configs`, the configuration files.
        registry: Model registry; by default the file in HACKATHON_MODEL_REGISTRY, else configs/model_registry.json.

    Returns:
        What each is, by its name.
    """
    found = _list_models(registry) if kind == "models" else LISTS[kind]()
    width = max(map(len, found), default=0)
    print_lines((f"{name:{width}}  {line}" for name, line in found.items()), indent=width + 2)
    return found


def _list_models(registry: str | None) -> dict[str, str]:
    entries = read_registry(registry_path(registry)).entries.values()
    return {
        each.model_name: f"{each.source}, {each.weights or 'random weights'}, {each.layer}, "
        f"width {each.output_dim or 'as first measured'}"
        for each in entries
    }


def _list_datasets() -> dict[str, str]:
    sources = {n: f"datamodules.{home}" for n, home in datamodules.HOMES.items() if "." in home and home != BASE}
    return {f"datamodules.{name}": first_line(module, name) for name, module in sources.items()}


def _list_configs() -> dict[str, str]:
    return {
        str(path.relative_to(PROJECT)): _first_sentence(path.read_text(encoding="utf-8").splitlines())
        for path in sorted((PROJECT / "configs").rglob("*.yaml"))
    }


def _first_sentence(lines: list[str]) -> str:
    """Give the first sentence of the comment that a file begins with; what is indented there is a command."""
    comment = " ".join(line[2:] for line in takewhile(re.compile(r"# \S").match, lines))
    return re.split(r"(?<=\.) ", comment)[0].rstrip(":")


LISTS = {
    "methods": lambda: {f"modules.{name}": method.title for name, method in METHODS.items()},
    "metrics": lambda: {name: f"{metric.title}: {metric.summary}" for name, metric in METRICS.items()},
    "measures": lambda: {name: f"{measure.title}; {measure.source}" for name, measure in SIMILARITY_MEASURES.items()},
    "datasets": _list_datasets,
    "configs": _list_configs,
}
