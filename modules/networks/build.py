"""How an entry of a model registry becomes a network."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import nn

from modules.networks.libraries import LIBRARIES, Library
from modules.networks.weights import WEIGHT_FILES, first_line, load_weights
from output.errors import UserError

CUSTOM = "custom"
# Arguments by which the libraries' constructors load weights; some of them would unpickle a file.
WEIGHT_ARGUMENTS = ("pretrained", "weights", "checkpoint", "load_weights", "require_pretrained")


def build_network(
    name: str,
    source: str,
    weights: str | None,
    parameters: Mapping[str, Any],
    seed: int,
    allowed_modules: Sequence[str],
) -> nn.Module:
    """Build the network of a registry entry.

    The constructor is the one that `parameters` name under the library's own argument (`name` for torchvision,
    `model_name` for timm and open_clip, `name` with a dotted path for custom sources); else the one of the
    entry's name; else the one of the library's names that the entry's name contains between separators.

    Args:
        name: The entry's `model_name`.
        source: `torchvision`, `timm`, `open_clip` or `custom`.
        weights: A pretrained identifier of the library, a `.safetensors`, `.pth` or `.pt` file with a state dict
            (a library's classifier may have any number of classes), or None for random weights.
        parameters: The entry's `model_parameters`.
        seed: Seed of random weights, together with the name: two entries never share theirs.
        allowed_modules: Python modules and packages that custom sources may come from.

    Returns:
        The network in float32 and in evaluation mode; its parameters require no gradient.

    Raises:
        UserError: Anything of it is unknown, refused, cannot be downloaded or does not fit.
    """
    drawn = int.from_bytes(hashlib.sha256(f"{seed}\0{name}".encode()).digest()[:8])
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(drawn)
            if source == CUSTOM:
                network = _build_custom(weights, parameters, allowed_modules)
            else:
                network = _build_from_library(name, LIBRARIES[source], weights, parameters)
    except UserError as error:
        msg = f"model {name!r}: {error}"
        raise UserError(msg) from error
    return network.float().eval().requires_grad_(False)


def custom_code(name: str, parameters: Mapping[str, Any], allowed_modules: Sequence[str]) -> dict[str, Path]:
    """Find the files of code that a custom model comes from: all of the allowed package, or the one allowed module.

    Args:
        name: The entry's `model_name`, for messages.
        parameters: The entry's `model_parameters`; `name` is the dotted path of the function.
        allowed_modules: Python modules and packages that custom sources may come from.

    Returns:
        Files by their names relative to the package, sorted; the module itself is not imported. Where a package and a
        part of it are allowed, the package counts.

    Raises:
        UserError: The path is missing or not allowed, or there is no such module.
    """
    try:
        module, _ = _allowed_path(parameters, allowed_modules)
        spec = _find_spec(module)
        if spec is None or spec.origin is None or not Path(spec.origin).is_file():
            msg = f"model_parameters.name: there is no Python file of the module {module!r}"
            raise UserError(msg)
        package = _find_spec(min((allowed for allowed in allowed_modules if _is_within(module, allowed)), key=len))
    except UserError as error:
        msg = f"model {name!r}: {error}"
        raise UserError(msg) from error
    file = Path(spec.origin)
    files: dict[str, Path] = {}
    for folder in map(Path, (package and package.submodule_search_locations) or ()):
        files.update((path.relative_to(folder).as_posix(), path) for path in folder.rglob("*.py") if path.is_file())
    if file not in files.values():
        files[file.name] = file
    return dict(sorted(files.items()))


def _find_spec(module: str) -> ModuleSpec | None:
    try:
        return find_spec(module)
    except Exception as error:  # a package's own code runs, and may raise anything
        msg = f"model_parameters.name: the module {module!r} cannot be found: {first_line(error)}"
        raise UserError(msg) from error


def _build_custom(weights: str | None, parameters: Mapping[str, Any], allowed_modules: Sequence[str]) -> nn.Module:
    if weights is not None and not weights.endswith(WEIGHT_FILES):
        msg = f"weights: {weights!r}, but a custom source takes a {' or '.join(WEIGHT_FILES)} file, or null"
        raise UserError(msg)
    module, function = _allowed_path(parameters, allowed_modules)
    arguments = {key: value for key, value in parameters.items() if key != "name"}
    try:
        network = getattr(import_module(module), function)(**arguments)
    except Exception as error:  # code of the user's own
        msg = (
            f"model_parameters: {module}.{function} failed with {arguments}: {type(error).__name__}: "
            f"{first_line(error)}"
        )
        raise UserError(msg) from error
    if not isinstance(network, nn.Module):
        msg = f"model_parameters.name: {module}.{function} gives a {type(network).__name__}, not a torch.nn.Module"
        raise UserError(msg)
    return network if weights is None else load_weights(network, Path(weights), None, "weights")


def _allowed_path(parameters: Mapping[str, Any], allowed_modules: Sequence[str]) -> tuple[str, str]:
    """Split a function's dotted path into module and name, where the module is allowed; nothing is imported."""
    path = parameters.get("name")
    if not isinstance(path, str) or not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)+", path):
        msg = f"model_parameters.name: {path!r}, but a custom source needs a dotted path, package.module.function"
        raise UserError(msg)
    module, _, function = path.rpartition(".")
    if not any(_is_within(module, allowed) for allowed in allowed_modules):
        msg = (
            f"model_parameters.name: custom code of the module {module!r} is not allowed; whoever trusts it names it, "
            "or a package of it, in extraction.allow_modules"
        )
        raise UserError(msg)
    return module, function


def _is_within(module: str, allowed: str) -> bool:
    return module == allowed or module.startswith(f"{allowed}.")


def _build_from_library(name: str, library: Library, weights: str | None, parameters: Mapping[str, Any]) -> nn.Module:
    loading = [key for key in parameters if key.startswith(WEIGHT_ARGUMENTS)]
    if loading:
        msg = f"model_parameters.{loading[0]}: not allowed; an entry's weights are named by its weights alone"
        raise UserError(msg)
    model = library.choose(name, parameters.get(library.argument))
    arguments = {key: value for key, value in parameters.items() if key != library.argument}
    if weights is None:
        return _create(library, model, None, arguments)
    if not weights.endswith(WEIGHT_FILES):
        known = library.identifiers(model)
        if weights not in known:
            msg = (
                f"weights: {library.title}'s {model} has no {weights!r}; allowed are "
                f"{', '.join([*known, 'null'])}, or a {' or '.join(WEIGHT_FILES)} file"
            )
            raise UserError(msg)
        return _create(library, model, weights, arguments)
    path = Path(weights)

    def rebuild(classes: int) -> nn.Module:
        return _create(library, model, None, {**arguments, "num_classes": classes})

    network = _create(library, model, None, arguments)
    return load_weights(network, path, rebuild if library.classifies else None, "weights")


def _create(library: Library, model: str, weights: str | None, arguments: Mapping[str, Any]) -> nn.Module:
    try:
        return library.create(model, weights, arguments)
    except Exception as error:  # a wrong argument or a failed download ends in errors of many unrelated kinds
        if weights is None or isinstance(error, TypeError | ValueError):
            msg = (
                f"model_parameters: {library.title}'s {model} cannot be created with {dict(arguments)}: "
                f"{first_line(error)}"
            )
        else:
            msg = (
                f"weights: {weights!r} of {library.title}'s {model} could not be downloaded or loaded "
                f"({first_line(error)}); check the connection, or name a local .safetensors or .pth file"
            )
        raise UserError(msg) from error
