"""Which weights a registry entry means, told without loading them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from contract.documents import Registry
from contract.schema import ModelEntry
from evaluation.extraction import Extraction
from output.errors import UserError

WEIGHT_FILES = (".safetensors", ".pth", ".pt")
PACKAGES = {"torchvision": "torchvision", "timm": "timm", "open_clip": "open_clip_torch"}


def weights_file(weights: str | None, folder: Path) -> Path | None:
    """Find the local file that a registry entry's weights name.

    Args:
        weights: The entry's `weights`.
        folder: The registry's folder, which relative paths start from; the working directory comes second.

    Returns:
        The path, which need not exist; None where the weights are no file.
    """
    if weights is None or not weights.endswith(WEIGHT_FILES):
        return None
    path = Path(weights).expanduser()
    beside = folder / path
    return path.absolute() if not beside.is_file() and path.is_file() else beside


def identify_all(names: Sequence[str], registry: Registry, options: Extraction) -> dict[str, dict[str, Any]]:
    """Tell which weights each of some models means, reading every file once.

    Args:
        names: Models of the registry.
        registry: The registry.
        options: How embeddings are computed.

    Returns:
        What `identify_weights` tells, by name.

    Raises:
        UserError: As `identify_weights`.
    """
    folder = registry.path.parent
    return {
        name: identify_weights(registry.entries[name], folder, options.seed, options.allow_modules) for name in names
    }


def identify_weights(entry: ModelEntry, folder: Path, seed: int, allowed_modules: Sequence[str]) -> dict[str, Any]:
    """Tell which weights an entry means.

    Args:
        entry: The model.
        folder: The registry's folder.
        seed: Seed of random weights.
        allowed_modules: Python modules that custom models may come from.

    Returns:
        What distinguishes them: the digest of a file; the library with its version and the identifier; or the seed
        of random weights. All code of a custom model's allowed package counts, too; code outside of it does not.

    Raises:
        UserError: A file of weights is missing.
    """
    identity: dict[str, Any] = {"model_name": entry.model_name}
    if entry.source == "custom":
        from modules.networks.build import custom_code

        identity["code"] = _digest_code(custom_code(entry.model_name, entry.model_parameters, allowed_modules))
    else:
        identity["library"] = _version(PACKAGES[entry.source])
    path = weights_file(entry.weights, folder)
    if path is not None:
        if not path.is_file():
            msg = f"model {entry.model_name!r}: weights: there is no file {str(path)!r}"
            raise UserError(msg)
        return {**identity, "file": _digest(path)}
    if entry.weights is None:
        return {**identity, "seed": seed, "torch": _version("torch")}
    return {**identity, "identifier": entry.weights}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest_code(files: Mapping[str, Path]) -> str:
    digest = hashlib.sha256()
    for name, path in files.items():
        digest.update(f"{name}\0{_digest(path)}\0".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _version(package: str) -> str | None:
    """Give the version of a package, None where it is not installed: building the network then says so."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
