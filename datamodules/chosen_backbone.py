"""The backbone that the options of a stream choose, built and tried out."""

from __future__ import annotations

from dataclasses import replace

import torch

from headstart.modules.networks.backbone import Backbone, BackboneSpec, build_backbone
from headstart.modules.networks.spec import NetworkSpec, prefix_model_errors
from headstart.output.errors import UserError


def build_chosen(
    chosen: BackboneSpec, seed: int, device: torch.device, of_pixels: bool = False
) -> tuple[NetworkSpec, Backbone]:
    """Build a backbone, by its own name or by the entry of a registry.

    Args:
        chosen: The options.
        seed: Seed of random weights.
        device: Where it is to run.
        of_pixels: Whether it is to give features of every pixel.

    Returns:
        What it is, and the backbone.

    Raises:
        UserError: It cannot be built, or not take the pictures, or the entry is of a network that classifies pixels
            where photos are to be classified.
    """
    if chosen.registry is None:
        spec = replace(chosen.network(seed), pixels=of_pixels)
        backbone = build_backbone(spec).to(device)
        backbone.try_out(spec)
        return spec, backbone
    # The contract's documents are slow to import.
    from headstart.datamodules.registry_backbone import read_network, require_features

    spec, tap = read_network(chosen, chosen.registry, seed)
    if spec.pixels and not of_pixels:
        raise UserError(f"name: {chosen.name!r} classifies pixels, where photos have one class each; choose another")
    spec = replace(spec, pixels=of_pixels)
    backbone = build_backbone(spec).to(device)
    with prefix_model_errors(chosen.name):
        backbone.try_out(spec)
    require_features(chosen.name, tap, backbone)
    return spec, backbone
