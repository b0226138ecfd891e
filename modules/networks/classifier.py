"""A named network with a classifier for as many classes as a data set has."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from headstart.modules.networks.build import build
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import CLASSIFIERS, NetworkSpec
from headstart.modules.networks.weights import linear_heads
from headstart.output.errors import UserError, reason_of


def build_classifier(spec: NetworkSpec, classes: int) -> tuple[NetworkSpec, nn.Module, Preprocessing, int]:
    """Build a network with a new classifier.

    Random networks of torchvision and timm draw theirs as the library does; one that has weights loses the classifier
    that it came with, and gets a linear layer as torch draws it. Both follow from the network's seed.

    Args:
        spec: The network.
        classes: Number of classes.

    Returns:
        The network that is meant, with its number of classes; the network, in the channels-last layout; how photos are
        prepared for it; and the number of features that enter the classifier.

    Raises:
        UserError: As `build`; or it has no linear classifier, or how photos are prepared for it is not told, or it does
            not take such photos.
    """
    sized = spec
    if spec.library in CLASSIFIERS:
        sized = replace(spec, arguments={**spec.arguments, "num_classes": classes})
    network, preprocessing = build(sized if spec.weights is None else spec)
    if preprocessing is None:
        raise UserError(
            f"preprocessing: {spec.name} tells of no square centre crop that it wants; give resize and crop"
        )
    heads = linear_heads(network)
    if not heads:
        raise UserError(f"name: {type(network).__name__} has no linear classifier to put another head in place of")
    if spec.weights is not None or next(iter(heads.values())).out_features != classes:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(spec.seed)
            for name, head in heads.items():
                network.set_submodule(name, nn.Linear(head.in_features, classes))
    _try_out(network, preprocessing, spec)
    width = next(iter(heads.values())).in_features
    return sized, network.to(memory_format=torch.channels_last), preprocessing, width


def _try_out(network: nn.Module, preprocessing: Preprocessing, spec: NetworkSpec) -> None:
    side = preprocessing.crop
    try:
        with torch.no_grad():
            network(torch.zeros(1, 3, side, side))
    except Exception as error:  # code of the network's own
        raise UserError(
            f"{spec.terms.preprocessing}: {spec.name} cannot take pictures of {side} x {side} pixels, the crop of the "
            f"preprocessing ({type(error).__name__}: {reason_of(error)}); give another crop or network"
        ) from error
