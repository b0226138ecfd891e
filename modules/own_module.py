"""A LightningModule of the user's own in a comparison: how it is named, checked and built for one ordering."""

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from inspect import isclass, signature
from types import MethodType
from typing import Any

import numpy as np
import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn

from headstart.modules.global_generators import GlobalGenerators
from headstart.modules.method import Method, MethodStart
from headstart.output.errors import UserError, reason_of

# Builds a module from a backbone and the number of classes.
MakeModule = Callable[[nn.Module, int], LightningModule]

# Lightning's own versions of these do nothing, or raise an error.
NEEDED = ("training_step", "forward", "configure_optimizers")


class OwnModule:
    """A class of LightningModules with its further arguments.

    Args:
        make: The class, or a `functools.partial` of it. Its first arguments are the backbone and the number of classes.
            The backbone is the identity on frozen features. Its `width` is the number of features, and its `new_head()`
            returns a linear layer with the head from which all methods start in this ordering.

    Attributes:
        kind: The class.
        options: Its further arguments.

    Raises:
        UserError: It is no such class, takes other arguments, or lacks what Lightning and an evaluation call.
    """

    def __init__(self, make: MakeModule) -> None:
        # The parser binds a class to a function of its own.
        parts = (make.func, *make.args) if isinstance(make, partial) else (make,)
        kinds = [each for each in parts if isclass(each) and issubclass(each, LightningModule)]
        if kinds and issubclass(kinds[0], Method) and isinstance(make, partial):
            # The parser tries a method first. It comes here where the constructor raised an error.
            try:
                make()
            except Exception as error:
                name = kinds[0].__name__
                raise UserError(f"{name} cannot be built with these arguments: {reason_of(error)}") from error
        if not kinds or issubclass(kinds[0], Method):
            name = getattr(make, "__name__", type(make).__name__)
            raise UserError(f"{name} is no method and no LightningModule; name a class of either kind")
        self.kind: type[LightningModule] = kinds[0]
        keywords = make.keywords if isinstance(make, partial) else {}
        self.options = {name: _not_copied(value) for name, value in keywords.items()}

        try:
            signature(self.kind).bind(None, 0, **self.options)
        except TypeError as error:
            raise UserError(
                f"{self.kind.__name__} must take the backbone and the number of classes first, and its other "
                f"arguments as options ({error})"
            ) from error
        if missing := [name for name in NEEDED if getattr(self.kind, name) is getattr(LightningModule, name)]:
            raise UserError(f"{self.kind.__name__} does not define {' and '.join(missing)}")

    def build(self, start: MethodStart) -> LightningModule:
        """Build the module of one ordering, from copies of the backbone and of arguments that are no functions.

        Args:
            start: What all methods start from.

        Raises:
            UserError: The constructor fails.
        """
        backbone = nn.Identity() if start.backbone is None else deepcopy(start.backbone)
        backbone.width, backbone.new_head = start.features, partial(_head, *start.heads())  # type: ignore[assignment]
        try:
            return self.kind(backbone, start.classes, **deepcopy(self.options))
        except (UserError, MemoryError, torch.OutOfMemoryError):
            raise
        # Code of the user's own may raise any error.
        except Exception as error:
            raise UserError(
                f"{self.kind.__name__} failed with a backbone and {start.classes} classes: {type(error).__name__}: "
                f"{reason_of(error)}"
            ) from error


def _not_copied(value: Any) -> Any:  # noqa: ANN401 - an argument
    """Return an argument, as a plain function if it is a bound one.

    The parser's functions that build optimisers and schedulers are bound to the parser, which cannot be copied, as
    Lightning does in `save_hyperparameters`.
    """
    return (lambda *args, **kwargs: value(*args, **kwargs)) if isinstance(value, partial | MethodType) else value


def _head(weight: Tensor, bias: Tensor) -> nn.Linear:
    """Return a layer with the head of the one ordering, which draws nothing."""
    head: nn.Linear = nn.utils.skip_init(nn.Linear, *weight[0].shape, device=weight.device)
    head.load_state_dict({"weight": weight[0].T, "bias": bias[0]})
    return head


def generators_of(start: MethodStart) -> GlobalGenerators:
    """Return the global generators of a module, which follow from the seed and the number of its ordering.

    Args:
        start: What the module starts from, with one ordering.
    """
    seed = np.random.SeedSequence((start.seed, start.ordering_numbers[0])).generate_state(1)
    return GlobalGenerators(int(seed[0]), start.device)
