"""`headstart list`: names that options accept. A kind imports only the modules that it needs."""

import re
from itertools import takewhile
from typing import Literal

from headstart.datamodules.photos import import_photo_sources
from headstart.modules.methods.catalogue import METHODS
from headstart.output.import_paths import ROOT
from headstart.output.printable import print_lines
from headstart.output.shipped_files import CONFIGS

# Module of the base classes of data sets.
BASE = "headstart.datamodules.photos.photo_source"
Kind = Literal["methods", "metrics", "measures", "models", "datasets", "configs"]


def list_choices(kind: Kind, registry: str | None = None) -> dict[str, str]:
    """List the names to choose from: methods, metrics, measures, models, datasets or configs.

    Args:
        kind: `methods` of headstart train, `metrics` of transferability, `measures` of similarity, `models` of the
            registry, `datasets` for photos, or `configs`, the configuration files.
        registry: Model registry; by default the file in HACKATHON_MODEL_REGISTRY, else configs/model_registry.json.

    Returns:
        Descriptions by name.
    """
    choices = _list_models(registry) if kind == "models" else LISTS[kind]()
    width = max(map(len, choices), default=0)
    print_lines((f"{name:{width}}  {line}" for name, line in choices.items()), indent=width + 2)
    return choices


def _list_models(registry: str | None) -> dict[str, str]:
    from headstart.contract.documents import read_registry, registry_path

    entries = read_registry(registry_path(registry)).entries.values()
    return {
        entry.model_name: f"{entry.source}, {entry.weights or 'random weights'}, {entry.layer}, "
        f"width {entry.output_dim or 'of the layer'}"
        for entry in entries
    }


def _list_datasets() -> dict[str, str]:
    sources = {name: source for name, source in import_photo_sources().items() if source.__module__ != BASE}
    return {name: str(source.__doc__).partition("\n")[0] for name, source in sources.items()}


def _list_methods() -> dict[str, str]:
    return {method.name: f"{name}: {method.title}" for name, method in METHODS.items()}


def _list_metrics() -> dict[str, str]:
    from headstart.metrics.transferability.catalogue import METRICS

    return {name: f"{metric.title}: {metric.summary}" for name, metric in METRICS.items()}


def _list_measures() -> dict[str, str]:
    from headstart.metrics.similarity.catalogue import SIMILARITY_MEASURES

    return {name: f"{measure.title}; {measure.source}" for name, measure in SIMILARITY_MEASURES.items()}


def _list_configs() -> dict[str, str]:
    return {
        str(path.relative_to(ROOT)): _first_sentence(path.read_text(encoding="utf-8").splitlines())
        for path in sorted(CONFIGS.rglob("*.yaml"))
    }


def _first_sentence(lines: list[str]) -> str:
    """Return the first sentence of the comment at the top of a file, without indented commands."""
    comment = " ".join(line[2:] for line in takewhile(re.compile(r"# \S").match, lines))
    return re.split(r"(?<=\.) ", comment)[0].rstrip(":")


LISTS = {
    "methods": _list_methods,
    "metrics": _list_metrics,
    "measures": _list_measures,
    "datasets": _list_datasets,
    "configs": _list_configs,
}
