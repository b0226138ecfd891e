"""Fine-tuning of a part of the backbone."""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn

from modules.method import Method, Start
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


def train_only(backbone: nn.Module, trained: Iterable[nn.Parameter]) -> None:
    """Let gradients be taken of some parameters of a backbone, and of no other; none is left out of its optimiser.

    Args:
        backbone: The backbone.
        trained: Parameters of it.
    """
    backbone.requires_grad_(False)
    for parameter in trained:
        parameter.requires_grad_(True)
