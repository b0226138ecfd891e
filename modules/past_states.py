"""The last states of a method, as far as its predictions depend on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.weak import WeakTensorKeyDictionary

from headstart.modules.checkpoint import digest_of_state, own_attributes, put_back, why_not
from headstart.modules.memory_errors import explain_memory_errors
from headstart.modules.method import Method
from headstart.modules.networks.trainable_backbone import TrainableBackbone
from headstart.output.errors import UserError

# What is a backbone's own affair, how it folds its modules and in what modes they are, and the code of a traced one.
OF_NOW = ("_folded", "_is_evaluated", "training", "_graph", "_code", "_lineno_map", "_prologue_start")


class Kept:
    """A copy of all that the modules of a backbone hold, which changes places with what they hold at present.

    The modules stay, so that nothing is traced anew, and so do their tensors, to which optimisers refer.

    Args:
        backbone: The backbone.
    """

    def __init__(self, backbone: nn.Module) -> None:
        modules, tensors = list(backbone.modules()), [*backbone.parameters(), *backbone.buffers()]
        memo = {id(each): each for each in (*modules, *tensors)}
        self.held = [(module, deepcopy(_held(module), memo)) for module in modules]
        self.tensors = [(tensor, tensor.detach().clone()) for tensor in tensors]

    def exchange(self) -> None:
        """Put the copy in the place of the present, and keep that."""
        present = [(module, _held(module)) for module, _ in self.held]
        for module, then in self.held:
            values = vars(module)
            for name in _held(module):
                del values[name]
            values.update(then)
        self.held = present
        for live, kept in self.tensors:
            live.data, kept.data = kept.data, live.data


def _held(module: nn.Module) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if name not in OF_NOW}


class PastStates:
    """Copies of a method after some evaluations, into which it can be put back to predict.

    A copy is of the method's attributes, with all that they hold but optimisers, what only saves time (weak
    dictionaries), and what all methods share.

    Args:
        method: The method.
        constructed: Its attributes as the constructor left them.

    Attributes:
        states: Copies by the number of their evaluation.
        is_compared: Whether the whole state has been looked at before and after an evaluation.
    """

    def __init__(self, method: Method, constructed: Mapping[str, Any]) -> None:
        self.method = method
        self.constructed = constructed
        self.states: dict[int, tuple[dict[str, Any], list[Kept]]] = {}
        self.is_compared = False
        self._copied: dict[str, type] = {}

    def keep(self, evaluation: int, optimizers: Sequence[Optimizer]) -> None:
        """Copy the method as it stands.

        Args:
            evaluation: Number of the evaluation.
            optimizers: Its optimisers, which do not predict.

        Raises:
            UserError: It holds something that cannot be copied.
        """
        method, backbones = self.method, self._backbones()
        attributes = own_attributes(method, self.constructed)
        kinds = {name: type(value) for name, value in attributes.items()}
        if kinds != self._copied:
            # A function that refers to what is copied would still refer to the present.
            self._refuse(why_not({"attributes": attributes}))
            self._copied = kinds
        left = [*vars(method.start).values(), *optimizers, *backbones, method]
        for module in method.modules():
            left += [value for value in vars(module).values() if isinstance(value, WeakTensorKeyDictionary)]
        memory = explain_memory_errors(
            f"criterion.evaluation: a copy of {type(method).__name__}, of up to ten,",
            "give every, or a smaller network",
        )
        # What is made in inference mode could not be put back.
        with torch.inference_mode(False), torch.no_grad():
            try:
                with memory:
                    copied = deepcopy(attributes, {id(value): value for value in left})
                    self.states[evaluation] = copied, [Kept(backbone) for backbone in backbones]
            except UserError:
                raise
            except Exception as error:  # whatever a class of the user's raises
                self._refuse(f"{type(error).__name__}: {error}")

    def footprint(self) -> tuple[Any, ...]:
        """Give what tells whether the method has changed: all that it holds at first, later what is seen at once."""
        method = self.method
        versions = [(id(each), each._version) for each in (*method.parameters(), *method.buffers())]
        whole = "" if self.is_compared else digest_of_state(method, self.constructed)
        return versions, {key: id(value) for key, value in vars(method).items()}, whole

    def _refuse(self, reason: str | None) -> None:
        if reason is not None:
            raise UserError(
                f"criterion.evaluation: lazy needs copies of {type(self.method).__name__}, of which something cannot "
                f"be copied ({reason}); give every"
            )

    def retain(self, evaluations: Sequence[int]) -> None:
        """Forget the states after all other evaluations.

        Args:
            evaluations: Those that may still be asked for.
        """
        self.states = {number: state for number, state in self.states.items() if number in evaluations}

    @contextmanager
    def at(self, evaluation: int) -> Iterator[None]:
        """Let the method be as it was after an evaluation of which a copy is kept, and then again as it is."""
        attributes, kept = self.states[evaluation]
        present = own_attributes(self.method, self.constructed)
        put_back(self.method, self.constructed, attributes)
        _exchange(kept)
        try:
            yield
        finally:
            _exchange(kept)
            put_back(self.method, self.constructed, present)

    def _backbones(self) -> list[TrainableBackbone]:
        """Give those of its own, without the one that all share."""
        own = [module for module in self.method.modules() if module is not self.method.start.backbone]
        return [module for module in own if isinstance(module, TrainableBackbone)]


def _exchange(kept: Sequence[Kept]) -> None:
    with torch.inference_mode(False):
        for each in kept:
            each.exchange()
