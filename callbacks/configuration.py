"""Which configurations give the same results."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import yaml

from headstart.contract.documents import registry_path

SEEDS, ORDERINGS = ("seed_everything",), ("seed", "orderings", "first_ordering")


def configuration_digest(config: str, *, over_seeds: bool = False) -> str:
    """Digest a configuration: the same for those that give the same results.

    Args:
        config: The whole configuration, YAML.
        over_seeds: Whether also those that differ in their seed and orderings alone are to have the same.

    Returns:
        Eight hexadecimal digits.
    """
    content, registry = essence(config), registry_digest(config)
    if registry is not None:
        content["registry_sha256"] = registry
    if over_seeds:
        for part, keys in ((content, SEEDS), (_fed(content), ORDERINGS)):
            for key in keys:
                part.pop(key, None)
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]


def essence(config: str) -> Any:  # noqa: ANN401 - whatever YAML holds
    """Give a configuration without what does not change its results: folders, what is logged, how photos are read.

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
        _fed(content).pop(key, None)
    return content


def registry_digest(config: str) -> str | None:
    """Digest the registry that the backbone comes from.

    Args:
        config: The whole configuration, YAML.

    Returns:
        SHA-256 of the file; None where the backbone comes from none.
    """
    registry = _fed(yaml.safe_load(config)).get("backbone", {}).get("registry")
    # Where it cannot be read, that is said with the option's name when its entry is needed.
    if registry is None or not (path := registry_path(registry)).is_file():
        return None
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _fed(content: dict[str, Any]) -> dict[str, Any]:
    """Give the options of what is fed: of a class that is chosen, or of the one that a task has."""
    data: dict[str, Any] = content.get("data", {})
    fed: dict[str, Any] = data.get("init_args", data)
    return fed
