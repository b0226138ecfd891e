"""What a network may ask for before it is built: arguments of a usual size, and a number of modules and weights."""

from __future__ import annotations

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

# Beyond what any network of the libraries has: the deepest have a few thousand modules, the largest 7 billion weights.
LARGEST_ARGUMENT = 1_000_000
MOST_MODULES = 50_000
MOST_PARAMETERS = 20_000_000_000


def require_usual_size(arguments: Mapping[str, Any], create: Callable[[], object], named: str) -> None:
    """Check that a constructor's arguments ask for a network that can be built, without taking memory for its weights.

    The network is made once without weights, on torch's meta device. One whose code cannot do that is counted when it
    is built.

    Args:
        arguments: The arguments, JSON values; without any, a network has the library's own size.
        create: Makes the network.
        named: What messages call the arguments.

    Raises:
        UserError: A whole number is above a million, or the network has too many modules or weights.
    """
    for place, number in _whole_numbers(arguments, named):
        if abs(number) > LARGEST_ARGUMENT:
            raise UserError(f"{place}: {number} is given; whole numbers up to {LARGEST_ARGUMENT:,} are allowed")
    if arguments:
        try:
            with torch.device("meta"), torch.random.fork_rng(devices=[]), limited_size(named):
                create()
        except UserError:
            raise
        except Exception:
            # What else is wrong is said when the network is built.
            log.debug("not counted beforehand", exc_info=True)


@contextmanager
def limited_size(named: str) -> Iterator[None]:
    """Refuse networks that grow beyond any usual size while they are built within.

    Args:
        named: What messages call the arguments that the size follows from.

    Raises:
        UserError: There are more than 50,000 modules or 20 billion weights.
    """
    modules = weights = 0

    def count_module(*_: object) -> None:
        nonlocal modules
        modules += 1
        if modules > MOST_MODULES:
            raise UserError(f"{named}: the network has more than {MOST_MODULES:,} modules; ask for a smaller one")

    def count_weights(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        nonlocal weights
        weights += 0 if parameter is None else parameter.numel()
        if weights > MOST_PARAMETERS:
            raise UserError(f"{named}: the network has more than {MOST_PARAMETERS:,} weights; ask for a smaller one")

    handles = [
        register_module_module_registration_hook(count_module),
        register_module_parameter_registration_hook(count_weights),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _whole_numbers(value: object, place: str) -> Iterator[tuple[str, int]]:
    if isinstance(value, int):
        yield place, value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _whole_numbers(part, f"{place}.{key}")
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _whole_numbers(part, place)
