"""A trained source model on disk: its weights, and its entry in a model registry."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from safetensors.torch import save
from torch import Tensor, nn

from headstart.contract.documents import read_registry
from headstart.contract.names import MODEL_PATTERN, PATTERN_RULES
from headstart.contract.schema import CONTRACT_VERSION
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import NetworkSpec
from headstart.modules.networks.taps import PENULTIMATE, PIXELS
from headstart.output.errors import UserError, reason_of
from headstart.output.files import output_file, replacing

WEIGHTS = "weights.safetensors"
REGISTRY = "registry.json"
# Bytes of the number in front of the header of safetensors, which is a multiple of as many.
LENGTH = 8


def half_precision(network: nn.Module) -> dict[str, Tensor]:
    """Give the weights and statistics of a network by name, in half precision wherever its range suffices.

    Args:
        network: The network; its integer buffers, which count batches, are left out.
    """
    state = {}
    for name, tensor in network.state_dict().items():
        if tensor.is_floating_point():
            half = tensor.detach().cpu().to(torch.float16)
            state[name] = (half if half.isfinite().all() else tensor.detach().cpu()).contiguous()
    return state


def weights_bytes(network: nn.Module, metadata: Mapping[str, str]) -> bytes:
    """Give the content of the file of weights, safetensors in half precision.

    Args:
        network: The network.
        metadata: What the file is to say of it.
    """
    content = save(half_precision(network))
    length = int.from_bytes(content[:LENGTH], "little")
    # The library's own way with metadata orders them by chance, and no two files of one model would be equal.
    header = {"__metadata__": dict(sorted(metadata.items())), **json.loads(content[LENGTH : LENGTH + length])}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % LENGTH)
    return len(text).to_bytes(LENGTH, "little") + text + content[LENGTH + length :]


def describe_architecture(spec: NetworkSpec, model: object) -> str:
    """Name an architecture for people: the library, the model and its arguments but for the number of classes.

    Args:
        spec: The network.
        model: The library's name for it.
    """
    arguments = [f"{key} {value}" for key, value in spec.arguments.items() if key != "num_classes"]
    return ", ".join([f"{spec.library} {model}", *arguments, *(["of pixels"] if spec.pixels else [])])


def registry_entry(
    name: str, weights: str, spec: NetworkSpec, model: object, preprocessing: Preprocessing, width: int, notes: str
) -> dict[str, Any]:
    """Give the entry of a source model, as the evaluation contract has it.

    Args:
        name: What the model is called.
        weights: Its file of weights, relative to the registry's folder.
        spec: The network.
        model: The library's name for it.
        preprocessing: How photos are prepared for it.
        width: Number of features that enter its classifier.
        notes: What people are to know.
    """
    argument = "model_name" if spec.library == "timm" else "name"
    return {
        "model_name": name,
        "source": spec.library,
        "weights": weights,
        "layer": PIXELS if spec.pixels else PENULTIMATE,
        "embedding": "pool" if spec.pixels else "flatten",
        "input_size": [preprocessing.crop, preprocessing.crop],
        "preprocess": asdict(preprocessing),
        "output_dim": width,
        "model_parameters": {argument: model, **spec.arguments},
        "notes": notes,
    }


def registry_file(chosen: str | None, folder: Path) -> Path:
    """Give the file that an entry goes into: the one that is chosen, else one in the run's folder.

    Raises:
        UserError: It cannot be written.
    """
    return output_file("results.registry", chosen) if chosen else folder / REGISTRY


def add_entry(registry: Path, entry: Mapping[str, Any], weights: Path, overwrite: bool) -> None:
    """Add the entry of a source model to a registry, or write one of it alone.

    Args:
        registry: The registry's file. Other processes may add to it at the same time.
        entry: The entry, whose weights are named here relative to the registry.
        weights: The file of weights.
        overwrite: Replace an entry of the same name that names other weights.

    Raises:
        UserError: The file cannot be read or written, or has another model of that name.
    """
    own = {**entry, "weights": Path(os.path.relpath(weights.absolute(), registry.absolute().parent)).as_posix()}
    try:
        registry.parent.mkdir(parents=True, exist_ok=True)
        # Where the run's own folder holds the registry, it is the run's alone.
        alone = nullcontext() if registry.parent == weights.parent else FileLock(f"{registry}.lock")
        with alone:
            others = _others(registry, str(own["model_name"]), str(own["weights"]), overwrite)
            document = {"contract_version": CONTRACT_VERSION, "models": [*others, own]}
            with replacing(registry) as partial:
                partial.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
                read_registry(partial)
    except OSError as error:
        raise UserError(
            f"results.registry: {str(registry)!r} cannot be written ({reason_of(error)}); choose another"
        ) from error


def require_name(name: str) -> None:
    """Check before training that a registry takes a name; a UserError if not."""
    if not re.fullmatch(MODEL_PATTERN, name):
        raise UserError(
            f"results.name: {name!r} cannot be a model's name in a registry; it {PATTERN_RULES[MODEL_PATTERN]}"
        )


def require_free(registry: Path, name: str, weights: Path, overwrite: bool) -> None:
    """Check before training that a registry has no other model of a name; errors as of `add_entry`."""
    path = Path(os.path.relpath(weights.absolute(), registry.absolute().parent)).as_posix()
    _others(registry, name, path, overwrite)


def _others(registry: Path, name: str, weights: str, overwrite: bool) -> Sequence[Mapping[str, Any]]:
    """Give the entries of other models, as they are written."""
    if not registry.exists():
        return []
    known = read_registry(registry).entries
    if name in known and known[name].weights != weights and not overwrite:
        raise UserError(
            f"results.name: {name!r} is another model in {str(registry)!r}, with the weights {known[name].weights!r}; "
            "give another name, or replace it with --results.overwrite=true"
        )
    document = json.loads(registry.read_text(encoding="utf-8"))
    models = document if isinstance(document, list) else document["models"]
    return [entry for entry in models if entry["model_name"] != name]
