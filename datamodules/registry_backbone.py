"""An entry of a model registry as the backbone of a stream."""

from __future__ import annotations

from dataclasses import fields
from difflib import get_close_matches

import torch

from headstart.contract.documents import read_registry, registry_path
from headstart.modules.networks.backbone import Backbone, BackboneSpec
from headstart.modules.networks.layer_embedding import LayerEmbedding
from headstart.modules.networks.spec import CLASSIFIERS, NetworkSpec
from headstart.modules.networks.taps import PENULTIMATE, Tap
from headstart.output.errors import UserError, prefix_errors

NAMED = ("name", "registry")


def read_network(backbone: BackboneSpec, registry: str, seed: int) -> tuple[NetworkSpec, Tap]:
    """Give the network of a registry's entry, and where the entry takes embeddings in it.

    Args:
        backbone: The options, of which the name alone is given.
        registry: The registry's file.
        seed: Seed of random weights, together with the name of the entry.

    Returns:
        The network, and the layer.

    Raises:
        UserError: The registry cannot be read, has no such entry, or one that cannot be a backbone; or more is given.
    """
    for option in fields(backbone):
        if option.name not in NAMED and getattr(backbone, option.name) != getattr(BackboneSpec(), option.name):
            raise UserError(f"{option.name}: not allowed beside a registry, whose entry says it; leave it out")
    with prefix_errors("registry"):
        known = read_registry(registry_path(registry))
    if backbone.name not in known.entries:
        close = ", ".join(get_close_matches(backbone.name, known.entries)) or ", ".join(known.entries)
        raise UserError(f"name: {backbone.name!r} is no entry of {registry!r}; it has {close}")
    entry = known.entries[backbone.name]
    if entry.source not in CLASSIFIERS:
        raise UserError(
            f"name: {backbone.name!r} is of source {entry.source!r}; entries of torchvision and timm are backbones"
        )
    if entry.forward_args:
        raise UserError(
            f"name: {backbone.name!r} has forward_args, which a backbone is run without; choose another entry"
        )
    return known.networks([backbone.name], seed)[backbone.name], Tap(entry.layer, entry.embedding, entry.output_dim)


@torch.no_grad()
def require_features(name: str, tap: Tap, backbone: Backbone) -> None:
    """Check that the layer of a registry's entry is the one that a backbone gives: what enters the classifier.

    Otherwise the commands that score the entry would score other features than those that methods are given.

    Args:
        name: The entry.
        tap: Where the entry takes embeddings.
        backbone: The network without its classifier.

    Raises:
        UserError: It is another layer.
    """
    if tap.layer == PENULTIMATE or backbone.of_pixels:
        return
    side = backbone.preprocessing.crop
    noise = torch.randint(256, (1, 3, side, side), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    features = backbone(noise.to(backbone.device))
    embeddings = LayerEmbedding(name, backbone.network, [tap], backbone.preprocessing)(noise.to(backbone.device))
    if embeddings.shape != features.shape or not torch.allclose(embeddings, features, rtol=1e-3, atol=1e-4):
        raise UserError(
            f"name: {name!r} takes embeddings at the layer {tap.layer!r}, where a backbone gives what enters the "
            f"classifier; choose an entry with the layer {PENULTIMATE!r}"
        )
