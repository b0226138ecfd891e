"""Limits of a network: the size of its arguments, and its numbers of modules and weights."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import (
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)

from headstart.output.errors import UserError

log = logging.getLogger(__name__)

# No network of the libraries is as large: the deepest have a few thousand modules, the largest 7 billion weights.
LARGEST_ARGUMENT = 1_000_000
MOST_MODULES = 50_000
MOST_PARAMETERS = 20_000_000_000


def require_usual_size(arguments: Mapping[str, Any], create: Callable[[], object], named: str) -> None:
    """Check that a constructor's arguments define a network of a usual size, without memory for its weights.

    The network is built once on torch's meta device. A network whose code cannot do that is counted when it is built.

    Args:
        arguments: The arguments, JSON values; without any, a network has the library's own size.
        create: Builds the network.
        named: Name of the arguments in messages.

    Raises:
        UserError: A whole number is above a million, or the network has too many modules or weights.
    """
    for path, number in _whole_numbers(arguments, named):
        if abs(number) > LARGEST_ARGUMENT:
            raise UserError(f"{path}: {number} is given; whole numbers up to {LARGEST_ARGUMENT:,} are allowed")
    if arguments:
        try:
            with torch.device("meta"), torch.random.fork_rng(devices=[]), limited_size(named):
                create()
        except UserError:
            raise
        except Exception:
            # Building the network reports other mistakes.
            log.debug("not counted before it is built", exc_info=True)


@contextmanager
def limited_size(named: str) -> Iterator[None]:
    """Raise an error as soon as a network that is built within exceeds any usual size.

    Args:
        named: Name of the arguments in messages, from which the size follows.

    Raises:
        UserError: There are more than 50,000 modules or 20 billion weights.
    """
    modules = weights = 0

    def count_module(*_: object) -> None:
        nonlocal modules
        modules += 1
        if modules > MOST_MODULES:
            raise UserError(f"{named}: the network has more than {MOST_MODULES:,} modules; choose a smaller one")

    def count_weights(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        nonlocal weights
        weights += 0 if parameter is None else parameter.numel()
        if weights > MOST_PARAMETERS:
            raise UserError(f"{named}: the network has more than {MOST_PARAMETERS:,} weights; choose a smaller one")

    handles = [
        register_module_module_registration_hook(count_module),
        register_module_parameter_registration_hook(count_weights),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _whole_numbers(value: object, path: str) -> Iterator[tuple[str, int]]:
    if isinstance(value, int):
        yield path, value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _whole_numbers(part, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _whole_numbers(part, path)
