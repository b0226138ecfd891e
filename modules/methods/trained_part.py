"""Fine-tuning of a part of the backbone."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor, nn

from modules.method import Method, Start
from modules.networks.trainable_backbone import folded
from output.errors import UserError


def require_photos(start: Start, method: Method) -> None:
    """Check that there is a backbone to train.

    Args:
        start: What the method starts from.
        method: The method, for the message.

    Raises:
        UserError: The stream feeds frozen features.
    """
    if start.backbone is None:
        raise UserError(
            f"model.methods: {type(method).__name__} runs a backbone of its own; feed it photos, with data=PhotoStream"
        )


def frozen_features(method: Method, inputs: Tensor) -> Tensor:
    """Give the features of a batch as an evaluation has them: no gradient is taken, and no statistics are trained.

    Args:
        method: The method, which has a backbone.
        inputs: As for its `features`.

    Returns:
        As its `features`.
    """
    with folded(method):
        features = method.features(inputs)
    # What inference made cannot be part of a graph.
    return features.clone()


def train_only(backbone: nn.Module, trained: Iterable[nn.Parameter]) -> None:
    """Let gradients be taken of some parameters of a backbone, and of no other; none is left out of its optimiser.

    Args:
        backbone: The backbone.
        trained: Parameters of it.
    """
    backbone.requires_grad_(False)
    for parameter in trained:
        parameter.requires_grad_(True)
