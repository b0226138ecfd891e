"""A trained source model on disk: its weights, and its entry in a model registry."""

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
from torch import nn

from headstart.contract.documents import read_registry
from headstart.contract.names import MODEL_PATTERN, PATTERN_RULES
from headstart.contract.schema import CONTRACT_VERSION
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import NetworkSpec
from headstart.modules.networks.taps import PENULTIMATE, PIXELS
from headstart.output.errors import UserError, explain_write_errors
from headstart.output.files import replacing

WEIGHTS = "weights.safetensors"
REGISTRY = "registry.json"
# The first 8 bytes of a safetensors file are the length of its header, which is padded to a multiple of 8 bytes.
PREFIX = 8


def weights_bytes(network: nn.Module, metadata: Mapping[str, str]) -> bytes:
    """Return the content of a safetensors file of weights; tensors are in half precision unless that would overflow.

    Args:
        network: The network. Its integer buffers, such as `num_batches_tracked`, are left out.
        metadata: Metadata of the file.
    """
    state = {}
    for name, tensor in network.state_dict().items():
        if tensor.is_floating_point():
            half = tensor.detach().cpu().to(torch.float16)
            state[name] = (half if half.isfinite().all() else tensor.detach().cpu()).contiguous()

    content = save(state)
    length = int.from_bytes(content[:PREFIX], "little")
    # The library writes metadata in random order, so files of the same model would differ.
    header = {"__metadata__": dict(sorted(metadata.items())), **json.loads(content[PREFIX : PREFIX + length])}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % PREFIX)
    return len(text).to_bytes(PREFIX, "little") + text + content[PREFIX + length :]


def describe_architecture(spec: NetworkSpec) -> str:
    """Return a description of an architecture: the library, the model and its arguments without the number of classes.

    Args:
        spec: The network.
    """
    arguments = [f"{key} {value}" for key, value in spec.arguments.items() if key != "num_classes"]
    return ", ".join([f"{spec.library} {spec.model}", *arguments, *(["of pixels"] if spec.pixels else [])])


def registry_entry(
    name: str, spec: NetworkSpec, preprocessing: Preprocessing, width: int, notes: str
) -> dict[str, Any]:
    """Return the registry entry of a source model as the evaluation contract defines it, without its weights.

    Args:
        name: Name of the model.
        spec: The network.
        preprocessing: How photos are prepared for it.
        width: Number of features that enter its classifier.
        notes: Notes for readers.
    """
    argument = "model_name" if spec.library == "timm" else "name"
    return {
        "model_name": name,
        "source": spec.library,
        "layer": PIXELS if spec.pixels else PENULTIMATE,
        "embedding": "pool" if spec.pixels else "flatten",
        "input_size": [preprocessing.crop, preprocessing.crop],
        "preprocess": asdict(preprocessing),
        "output_dim": width,
        "model_parameters": {argument: spec.model, **spec.arguments},
        "notes": notes,
    }


def add_entry(registry: Path, entry: Mapping[str, Any], weights: Path) -> None:
    """Add the entry of a source model to a registry, or replace the entry of that name.

    Args:
        registry: The registry's file; created if missing. Other processes may add to it at the same time.
        entry: The entry, without its weights.
        weights: The file of weights.

    Raises:
        UserError: The file cannot be read or written.
    """
    with explain_write_errors(f"results.registry: {str(registry)!r}", "choose another"):
        registry.parent.mkdir(parents=True, exist_ok=True)
        # No other process writes to a registry in the folder of the run.
        with nullcontext() if registry.parent == weights.parent else FileLock(f"{registry}.lock"):
            others = other_entries(registry, str(entry["model_name"]), weights, overwrite=True)
            added = {**entry, "weights": _relative_path(weights, registry)}
            document = {"contract_version": CONTRACT_VERSION, "models": [*others, added]}
            with replacing(registry) as partial:
                partial.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
                read_registry(partial)


def require_name(name: str) -> None:
    """Raise a UserError before training if a registry does not accept a name."""
    if not re.fullmatch(MODEL_PATTERN, name):
        raise UserError(
            f"results.name: {name!r} cannot be a model's name in a registry; it {PATTERN_RULES[MODEL_PATTERN]}"
        )


def other_entries(registry: Path, name: str, weights: Path, overwrite: bool) -> Sequence[Mapping[str, Any]]:
    """Return the unparsed entries of all other models in a registry; none if the file is missing.

    Args:
        registry: The registry's file.
        name: Name of the model.
        weights: Its file of weights.
        overwrite: Whether an entry of the same name may have other weights.

    Raises:
        UserError: The file cannot be read, or has another model of that name.
    """
    if not registry.exists():
        return []
    entry = read_registry(registry).entries.get(name)
    if entry is not None and entry.weights != _relative_path(weights, registry) and not overwrite:
        raise UserError(
            f"results.name: {name!r} is another model in {str(registry)!r}, with the weights {entry.weights!r}; "
            "give another name, or replace it with --results.overwrite=true"
        )
    document = json.loads(registry.read_text(encoding="utf-8"))
    models = document if isinstance(document, list) else document["models"]
    return [model for model in models if model["model_name"] != name]


def _relative_path(weights: Path, registry: Path) -> str:
    return Path(os.path.relpath(weights.absolute(), registry.absolute().parent)).as_posix()
