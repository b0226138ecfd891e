"""An entry of a model registry as the backbone of a stream."""

from __future__ import annotations

from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path

from contract.documents import read_registry
from modules.networks.backbone import BackboneSpec
from modules.networks.libraries import LIBRARIES
from modules.networks.spec import NetworkSpec
from output.errors import UserError, naming

NAMED = ("name", "registry")


def read_network(backbone: BackboneSpec, registry: str, seed: int) -> NetworkSpec:
    """Give the network of a registry's entry; features are what enters its classifier, whichever layer the entry names.

    Args:
        backbone: The options, of which the name alone is given.
        registry: The registry's file.
        seed: Seed of random weights, together with the name of the entry.

    Returns:
        The network.

    Raises:
        UserError: The registry cannot be read, has no such entry, or one that cannot be a backbone; or more is given.
    """
    for option in fields(backbone):
        if option.name not in NAMED and getattr(backbone, option.name) != getattr(BackboneSpec(), option.name):
            msg = f"{option.name}: not allowed beside a registry, whose entry says it; leave it out"
            raise UserError(msg)
    with naming("registry"):
        known = read_registry(Path(registry).expanduser())
    if backbone.name not in known.entries:
        close = ", ".join(get_close_matches(backbone.name, known.entries)) or ", ".join(known.entries)
        msg = f"name: {backbone.name!r} is no entry of {registry!r}; it has {close}"
        raise UserError(msg)
    entry = known.entries[backbone.name]
    if entry.source not in LIBRARIES or not LIBRARIES[entry.source].classifies:
        msg = f"name: {backbone.name!r} is of source {entry.source!r}; entries of torchvision and timm are backbones"
        raise UserError(msg)
    if entry.forward_args:
        msg = f"name: {backbone.name!r} has forward_args, which a backbone is run without; choose another entry"
        raise UserError(msg)
    return known.networks([backbone.name], seed)[backbone.name]
