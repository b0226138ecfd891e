"""Backbones, which are pre-trained networks without their classifier, and networks with a new one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx.experimental.optimization import fuse

from headstart.modules.networks.build import build, explain_picture_errors
from headstart.modules.networks.folding import are_same, run_once
from headstart.modules.networks.normalization import Normalization
from headstart.modules.networks.pixel_classifier import PixelClassifier
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import CLASSIFIER_LIBRARIES, CUSTOM, NetworkSpec
from headstart.modules.networks.weights import linear_heads, weights_digest
from headstart.output.errors import UserError


class Backbone(nn.Module):
    """A network without its classifier, from photos to features.

    Batch norm runs on its stored statistics and dropout is off, also during training: a stream in small batches has no
    usable batch statistics.

    Args:
        network: The network, its classifier replaced by the identity.
        width: Number of features.
        source_head: The classifier it was trained with, from features to source classes, if it has one.
        preprocessing: The preparation of photos for it.

    Attributes:
        source_head: Weights of that classifier, `[source classes, features]`.
        source_bias: Its bias, `[source classes]`.
        of_pixels: Whether its features are of every pixel, `[samples, height, width, features]`.
    """

    source_head: Tensor | None
    source_bias: Tensor | None

    def __init__(
        self, network: nn.Module, width: int, source_head: nn.Linear | None, preprocessing: Preprocessing
    ) -> None:
        super().__init__()
        self.network = network.to(memory_format=torch.channels_last)
        self.width = width
        self.preprocessing = preprocessing
        # A part of a network on a GPU, or a folded copy, runs there, too.
        place = next(self.network.parameters(), torch.empty(0)).device
        self.normalize = Normalization(preprocessing).to(place)
        weight = bias = None
        if source_head is not None:
            weight = source_head.weight.detach().clone()
            bias = torch.zeros(len(weight)) if source_head.bias is None else source_head.bias.detach().clone()
        self.register_buffer("source_head", weight, persistent=False)
        self.register_buffer("source_bias", bias, persistent=False)
        self.of_pixels = isinstance(network, PixelClassifier)
        self.eval()

    @property
    def device(self) -> torch.device:
        """The device of the network."""
        return next(self.network.parameters()).device

    def train(self, mode: bool = True) -> Backbone:
        """Stay in evaluation mode, whichever mode is requested."""
        return super().train(False)

    def forward(self, photos: Tensor) -> Tensor:
        """Compute features.

        Args:
            photos: Prepared photos, uint8 `[samples, 3, height, width]`.

        Returns:
            `[samples, features]`.
        """
        images = self.normalize(photos).contiguous(memory_format=torch.channels_last)
        features: Tensor = self.network(images)
        return features

    def noise_photo(self) -> Tensor:
        """Return a photo of noise on the network's device, uint8 `[1, 3, height, width]`, always the same."""
        return self.preprocessing.noise_photo().to(self.device)

    def try_out(self, spec: NetworkSpec) -> None:
        """Run on a photo of noise beside two others, so that a network that does not fit is found before decoding.

        Args:
            spec: The network, for messages.

        Raises:
            UserError: It cannot take pictures of the crop's size, its features are not `[pictures, features]`, or those
                of one picture depend on the others.
        """
        photo = self.noise_photo()
        with explain_picture_errors(spec, self.preprocessing.crop):
            features = run_once(self, torch.cat([photo, photo.flip(-1)]))
            again = run_once(self, torch.cat([torch.zeros_like(photo), photo]))
        shape = features.shape if isinstance(features, Tensor) else ()
        if (*shape[:1], *shape[-1:]) != (2, self.width) or len(shape) != (4 if self.of_pixels else 2):
            result = list(features.shape) if isinstance(features, Tensor) else f"a {type(features).__name__}"
            raise UserError(
                f"{spec.terms.model}: {spec.name} returns {result} for two pictures, but its num_features or "
                f"classifier says {[2, self.width]}; a backbone returns one row of features for each"
            )
        if features[0].isfinite().all() and not are_same(features[:1], again[1:]):
            raise UserError(
                f"{spec.terms.model}: {spec.name} returns other features of a picture beside other pictures; give a "
                "network whose features do not depend on the batch (batch norm with track_running_stats=true)"
            )

    def folded(self) -> Backbone:
        """Return a backbone for inference with every batch norm folded into the convolution before it.

        The features are the same except for rounding, at up to twice the speed. A network runs unfolded if its code
        cannot be traced, or if folding changes its features. The source head is left out.
        """
        plain = Backbone(self.network, self.width, None, self.preprocessing)
        try:
            folded = Backbone(fuse(self.network), self.width, None, self.preprocessing)
        except Exception:  # tracing fails with errors of many unrelated kinds
            return plain
        photo = self.noise_photo()
        return folded if are_same(run_once(folded, photo), run_once(self, photo)) else plain

    def digest(self) -> str:
        """Return a digest of every weight and statistic of the network, by name."""
        return weights_digest(self.network)


def build_backbone(spec: NetworkSpec) -> Backbone:
    """Build a network without its classifier.

    Args:
        spec: The network: a classifier of torchvision or timm, or a custom one. The linear layer of a custom one that
            runs last is its classifier, unless it has `num_features`, the width of its features.

    Returns:
        The backbone, in evaluation mode and the channels-last layout.

    Raises:
        UserError: As `build`; or it has no classifier, or changes what that returns.
    """
    network, preprocessing = build(spec)
    has_width = hasattr(network, "num_features")
    heads = dict[str, nn.Linear]()
    if spec.library != CUSTOM or not has_width:
        heads = _find_heads(network, preprocessing, spec, may_lack=has_width)

    for classifier in heads.values():
        identity = nn.Identity()
        # A layer may have several names.
        for name in [name for name, layer in network.named_modules(remove_duplicate=False) if layer is classifier]:
            network.set_submodule(name, identity)
    if spec.library == CUSTOM and heads:
        _require_last(network, next(iter(heads)), partial(run_on_noise, network, preprocessing), spec)
    elif spec.library != CUSTOM and len(heads) != 1 and hasattr(network, "forward_head"):
        network.__class__ = _headless(type(network))

    width: Any = getattr(network, "num_features", None)
    if len(heads) == 1:
        width = next(iter(heads.values())).in_features
    elif spec.library != CUSTOM:
        # The features of some networks of timm are wider than the feature maps, whose width is `num_features`.
        with explain_picture_errors(spec, preprocessing.crop):
            width = run_on_noise(network, preprocessing).shape[-1]

    # Classifiers whose logits are averaged are no linear head of one layer's features.
    is_trained = spec.weights is not None and getattr(network, "num_classes", None) != 0
    head = next(iter(heads.values())) if len(heads) == 1 and is_trained else None
    return Backbone(network, width, head, preprocessing)


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
        UserError: As `build`; or it has no linear classifier, or does not take such photos.
    """
    sized = spec
    if spec.library in CLASSIFIER_LIBRARIES:
        sized = replace(spec, arguments={**spec.arguments, "num_classes": classes})
    network, preprocessing = build(sized if spec.weights is None else spec)

    heads = _find_heads(network, preprocessing, spec)
    if spec.weights is not None or next(iter(heads.values())).out_features != classes:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(spec.seed)
            for name, head in heads.items():
                network.set_submodule(name, nn.Linear(head.in_features, classes))

    width = next(iter(heads.values())).in_features
    return sized, network.to(memory_format=torch.channels_last), preprocessing, width


def run_on_noise(network: nn.Module, preprocessing: Preprocessing) -> Tensor:
    """Run a network once on a photo of noise.

    Args:
        network: The network, on the processor.
        preprocessing: The preparation of photos for it.
    """
    return run_once(network, Normalization(preprocessing)(preprocessing.noise_photo()))


def _find_heads(
    network: nn.Module, preprocessing: Preprocessing, spec: NetworkSpec, may_lack: bool = False
) -> dict[str, nn.Linear]:
    """Return the linear classifiers of a network by module path; a UserError where it has none but needs one."""
    with explain_picture_errors(spec, preprocessing.crop):
        heads = linear_heads(network, partial(run_on_noise, network, preprocessing))
    if not heads and not may_lack:
        raise UserError(f"name: {type(network).__name__} has no linear classifier that another head could replace")
    return heads


class PreLogits:
    """Base class of networks of timm with several classifiers, or a convolution: they return timm's pre-logits."""

    def forward(self: Any, images: Tensor) -> Any:  # noqa: ANN401 - timm has no types
        """Return what enters the classifiers."""
        return self.forward_head(self.forward_features(images), pre_logits=True)


def _headless(kind: type) -> type:
    # Tracing reads the function of the class.
    return type(kind.__name__, (PreLogits, kind), {})


def _require_last(network: nn.Module, name: str, run: Callable[[], Tensor], spec: NetworkSpec) -> None:
    """Raise a UserError if a network does more than to return what its classifier, which is the identity now, does."""
    outputs = list[Tensor]()
    try:
        with network.get_submodule(name).register_forward_hook(lambda *call: outputs.append(call[-1])):
            features = run()
        is_last = len(outputs) == 1 and are_same(features.flatten(1), outputs[0].flatten(1))
    except Exception:  # code of the user's own, which may expect the classifier's width
        is_last = False
    if not is_last:
        raise UserError(
            f"{spec.terms.model}: {spec.name} does more than to return what its last linear layer {name!r} returns, "
            "for instance a softmax or a mean with another layer, which would change features, too; let it return "
            "logits, or features and their width num_features"
        )
