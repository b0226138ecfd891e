"""Checks of methods, their names in messages, and how their predictions are counted."""

import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn

from headstart.modules.method import Method
from headstart.output.errors import UserError, prefix_errors

BASELINE = "baseline"
# The beginning of a message that names an option itself.
OPTION = re.compile(r"(model|data|criterion|trainer)[.:]")
# Methods that Lightning would call of a module that it trains.
HOOKS = [
    name
    for name, _ in inspect.getmembers(LightningModule, inspect.isfunction)
    if name.endswith("_step") or name.startswith(("on_", "configure_"))
]


def option_of(name: str) -> str:
    """Return the option that chooses a method."""
    return "model.baseline" if name == BASELINE else f"model.methods.{name}"


@contextmanager
def prefix_method_errors(name: str) -> Iterator[None]:
    """Prefix the user's errors that a method raises by the option that chooses it, unless they name another option.

    Args:
        name: The method's name.
    """
    try:
        yield
    except UserError as error:
        if OPTION.match(str(error)):
            raise
        with prefix_errors(option_of(name)):
            raise


def require_name(name: str) -> None:
    """Check the name of a custom method.

    Args:
        name: The name.

    Raises:
        UserError: It is the baseline's, or not possible for a module.
    """
    if name == BASELINE:
        raise UserError(f"model.methods: the name {BASELINE!r} is the baseline's own; give this method another")
    if "." in name or not name or hasattr(nn.ModuleDict, name):
        raise UserError(f"model.methods: {name!r} cannot be a method's name; take letters, digits and underscores")


def require_method(name: str, method: Method) -> None:
    """Check a method's arguments, and that it defines no hook that is never called and no parameters of its own."""
    with prefix_errors(option_of(name)):
        method.check_arguments()
    if next(method.parameters(), None) is not None:
        raise UserError(
            f"{option_of(name)}: {type(method).__name__} creates parameters in its constructor; create them in begin, "
            "which is called before each pass over the stream"
        )
    for hook in HOOKS:
        if getattr(type(method), hook) is not getattr(LightningModule, hook):
            raise UserError(
                f"{option_of(name)}: {type(method).__name__} defines {hook}, which is never called; a method learns in "
                "adapt, predicts in forward, and creates its optimisers in build_optimizers"
            )


def require_logits(logits: object, shape: tuple[int, ...]) -> Tensor:
    """Return a method's predictions if they have the right shape.

    Args:
        logits: The predictions.
        shape: The shape that they must have, `[orderings, samples, classes]`, or `[samples, classes]` of one ordering.

    Raises:
        UserError: They have another shape.
    """
    if not isinstance(logits, Tensor) or logits.shape != shape:
        result = list(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        names = ", ".join(("orderings", "samples", "classes")[-len(shape) :])
        raise UserError(f"forward returns {result}; it must return logits [{names}], here {list(shape)}")
    return logits


def count_predictions(logits: Tensor, labels: Tensor, class_weights: Tensor | None) -> Tensor:
    """Count the predictions of one chunk of the validation set.

    NaN and minus infinity are wrong; plus infinity of one class is a prediction without a probability, which may be
    correct.

    Args:
        logits: `[orderings, samples, classes]`.
        labels: `[samples]`.
        class_weights: The weight of a correct prediction by its class, `[classes]`; 1 by default.

    Returns:
        Correct predictions, and predictions whose greatest logit is not finite, `[2, orderings]`.
    """
    # A class without a sample may have -inf; the greatest is NaN where any is.
    greatest, predicted = logits.max(-1)
    # Of a network that has overflowed, several are +inf.
    is_one = (logits == torch.inf).sum(-1) <= 1
    is_correct = (predicted == labels) & (greatest > -torch.inf) & is_one
    correct = is_correct if class_weights is None else is_correct * class_weights[labels]
    return torch.stack([correct.sum(-1), (~greatest.isfinite()).sum(-1)])


def weights_are_finite(method: Method) -> Tensor | None:
    """Return whether the weights of a trained network are finite, as a tensor on its device; None without a network.

    -inf is allowed, with which a method may exclude a class.

    Args:
        method: The method.
    """
    weights = [] if method.start.backbone is None else [parameter.detach().sum() for parameter in method.parameters()]
    return (torch.stack(weights) < torch.inf).all() if weights else None


def require_finite(method: Method, is_finite: Tensor | None, samples_seen: int) -> None:
    """Check that a network has not diverged; further training would be useless.

    Args:
        method: The method.
        is_finite: The result of `weights_are_finite`.
        samples_seen: Samples that it has seen.

    Raises:
        UserError: It has diverged.
    """
    if is_finite is not None and not is_finite:
        raise UserError(
            f"its loss turned NaN or infinite, and its weights with it, by {samples_seen} samples of ordering "
            f"{method.start.ordering_numbers[0]}; lower its learning rate"
        )
