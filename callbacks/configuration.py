"""Digests of configurations, which are the same if the results are."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import yaml

from headstart.contract.documents import registry_path

SEEDS, ORDERINGS = ("seed_everything",), ("seed", "orderings", "first_ordering")


def configuration_digest(config: str, *, over_seeds: bool = False) -> str:
    """Return a digest that is the same for configurations with the same results.

    Args:
        config: The whole configuration, YAML.
        over_seeds: Whether it is also the same for configurations that differ in their seed and orderings alone.

    Returns:
        Eight hexadecimal digits.
    """
    content, registry = essence(config), registry_digest(config)
    if registry is not None:
        content["registry_sha256"] = registry
    if over_seeds:
        for part, keys in ((content, SEEDS), (_data_options(content), ORDERINGS)):
            for key in keys:
                part.pop(key, None)
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]


def essence(config: str) -> Any:  # noqa: ANN401 - whatever YAML holds
    """Return the options that change the results, without folders, loggers and the way in which photos are read.

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
    for key in ("cache_dir", "num_workers"):
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
