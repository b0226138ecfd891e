"""A named network with a classifier for as many classes as a data set has."""

from dataclasses import replace
from functools import partial

import torch
from torch import nn

from headstart.modules.networks.build import build_prepared, explain_picture_errors
from headstart.modules.networks.folding import run_once
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import CLASSIFIERS, NetworkSpec
from headstart.modules.networks.weights import linear_heads
from headstart.output.errors import UserError


def build_classifier(spec: NetworkSpec, classes: int) -> tuple[NetworkSpec, nn.Module, Preprocessing, int]:
    """Build a network with a new classifier.

    Random networks of torchvision and timm initialise their classifiers as the library does. In a network with weights,
    a linear layer replaces the classifier, initialised as in torch. Both follow from the network's seed.

    Args:
        spec: The network.
        classes: Number of classes.

    Returns:
        The spec, with its number of classes; the network, in the channels-last layout; its preparation of photos; and
        the number of features that enter the classifier.

    Raises:
        UserError: As `build_prepared`; or it has no linear classifier, or does not take such photos.
    """
    sized = spec
    if spec.library in CLASSIFIERS:
        sized = replace(spec, arguments={**spec.arguments, "num_classes": classes})
    network, preprocessing = build_prepared(sized if spec.weights is None else spec)

    side = preprocessing.crop
    with explain_picture_errors(spec, spec.terms.preprocessing, side):
        heads = linear_heads(network, partial(run_once, network, torch.zeros(1, 3, side, side)))
    if not heads:
        raise UserError(f"name: {type(network).__name__} has no linear classifier that another head could replace")
    if spec.weights is not None or next(iter(heads.values())).out_features != classes:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(spec.seed)
            for name, head in heads.items():
                network.set_submodule(name, nn.Linear(head.in_features, classes))

    width = next(iter(heads.values())).in_features
    return sized, network.to(memory_format=torch.channels_last), preprocessing, width
