"""The backbone that the options of a stream choose, by its own name or by an entry of a model registry."""

from contextlib import nullcontext
from dataclasses import fields, replace
from difflib import get_close_matches

import torch

from headstart.modules.networks.backbone import Backbone, build_backbone
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.build import choose_model
from headstart.modules.networks.layer_embedding import LayerEmbedding
from headstart.modules.networks.spec import CLASSIFIER_LIBRARIES, NetworkSpec, prefix_model_errors
from headstart.modules.networks.taps import PENULTIMATE, Tap
from headstart.output.errors import UserError, prefix_errors

# Options that choose an entry of a registry; the entry decides the others.
OF_REGISTRY = ("name", "registry")


def build_chosen(
    chosen: BackboneSpec, seed: int, device: torch.device, of_pixels: bool = False
) -> tuple[NetworkSpec, Backbone]:
    """Build a backbone, and run it on one picture.

    Args:
        chosen: The options.
        seed: Seed of random weights.
        device: Where it runs.
        of_pixels: Whether it returns features of every pixel.

    Returns:
        The network as it was loaded, with its model, preprocessing and digest of the weights; and the backbone.

    Raises:
        UserError: It cannot be built or cannot take the pictures. Or the entry is of a network that classifies pixels,
            and photos are to be classified.
    """
    if chosen.registry is None:
        spec, tap = chosen.network(seed), None
    else:
        spec, tap = read_network(chosen, chosen.registry, seed)
        if spec.pixels and not of_pixels:
            raise UserError(f"name: {chosen.name!r} classifies pixels, but photos have one class each; choose another")

    spec = replace(spec, pixels=of_pixels)
    backbone = build_backbone(spec).to(device)
    with nullcontext() if tap is None else prefix_model_errors(chosen.name):
        backbone.try_out(spec)
    if tap is not None:
        _require_features(chosen.name, tap, backbone)

    model, preprocessing, digest = choose_model(spec), backbone.preprocessing, backbone.digest()
    return replace(spec, model=model, preprocessing=preprocessing, loaded_sha256=digest), backbone


def read_network(backbone: BackboneSpec, registry: str, seed: int) -> tuple[NetworkSpec, Tap]:
    """Return the network of a registry's entry, and the layer of the entry's embeddings.

    Args:
        backbone: The options, of which only the name is given.
        registry: The registry's file.
        seed: Seed of random weights, together with the name of the entry.

    Raises:
        UserError: The registry cannot be read, has no such entry, or one that cannot be a backbone; or more is given.
    """
    # The contract's documents are slow to import.
    from headstart.contract.documents import read_registry, registry_path

    for option in fields(backbone):
        if option.name not in OF_REGISTRY and getattr(backbone, option.name) != getattr(BackboneSpec(), option.name):
            raise UserError(f"{option.name}: not allowed with a registry, whose entry defines it; leave it out")
    with prefix_errors("registry"):
        models = read_registry(registry_path(registry))
    name = backbone.name
    if name not in models.entries:
        close = ", ".join(get_close_matches(name, models.entries)) or ", ".join(models.entries)
        raise UserError(f"name: {name!r} is not an entry of {registry!r}; it has {close}")

    entry = models.entries[name]
    if entry.source not in CLASSIFIER_LIBRARIES:
        raise UserError(f"name: {name!r} is of source {entry.source!r}; entries of torchvision and timm are backbones")
    if entry.forward_args:
        raise UserError(f"name: {name!r} has forward_args, which a backbone does not support; choose another entry")
    return models.networks([name], seed)[name], Tap(entry.layer, entry.embedding, entry.output_dim)


@torch.no_grad()
def _require_features(name: str, tap: Tap, backbone: Backbone) -> None:
    """Check that the layer of a registry's entry holds the backbone's features: what enters the classifier.

    Otherwise the commands that score the entry would score other features than those that methods learn from.

    Args:
        name: The entry.
        tap: Where the entry takes embeddings.
        backbone: The network without its classifier.

    Raises:
        UserError: It is another layer.
    """
    if tap.layer == PENULTIMATE or backbone.of_pixels:
        return
    photo = backbone.noise_photo()
    features = backbone(photo)
    embeddings = LayerEmbedding(name, backbone.network, [tap], backbone.preprocessing)(photo)
    if embeddings.shape != features.shape or not torch.allclose(embeddings, features, rtol=1e-3, atol=1e-4):
        raise UserError(
            f"name: {name!r} takes embeddings at the layer {tap.layer!r}, but a backbone needs the input of the "
            f"classifier; choose an entry with the layer {PENULTIMATE!r}"
        )
