"""A model registry and a stimuli catalog of a few names, none of whose networks can run."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from headstart.contract.documents import Catalog, Registry
from headstart.contract.schema import ModelEntry, Source, Stimulus

COMMON: dict[str, Any] = {
    "weights": None,
    "layer": "fc",
    "embedding": "flatten",
    "input_size": (64, 64),
    "preprocess": {"mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5), "resize": 64, "crop": 64},
    "output_dim": 8,
}


def make_registry(models: Iterable[str] | dict[str, Source], **parameters: dict[str, Any]) -> Registry:
    """Return a registry of models; `parameters` are those of some, by name."""
    sources: dict[str, Source] = models if isinstance(models, dict) else dict.fromkeys(models, "timm")
    entries = {
        name: ModelEntry(model_name=name, source=source, model_parameters=parameters.get(name, {}), **COMMON)
        for name, source in sources.items()
    }
    return Registry(Path("registry"), entries, "")


def make_catalog(stimuli: Iterable[tuple[str, str]]) -> Catalog:
    """Return a catalog of pairs of a data set and an identifier."""
    listed = [Stimulus(dataset_name=dataset, image_identifier=path) for dataset, path in stimuli]
    return Catalog(Path("catalog"), listed, "")
