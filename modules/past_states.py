"""The last states of a method, as far as its predictions depend on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.utils.weak import WeakTensorKeyDictionary

from modules.checkpoint import FUNCTIONS, own_attributes
from modules.method import Method
from modules.networks.trainable_backbone import TrainableBackbone
from output.errors import UserError

State = tuple[dict[str, Any], list[list[Tensor]]]


class PastStates:
    """Copies of a method after some evaluations, into which it can be put back to predict.

    A copy is of the method's attributes, with all that they hold but optimisers, functions, what only saves time (weak
    dictionaries), and what all methods share. Of a backbone the tensors alone are copied; the modules stay.

    Args:
        method: The method.
        constructed: Its attributes as the constructor left them.

    Attributes:
        states: Copies by the number of their evaluation.
    """

    def __init__(self, method: Method, constructed: Mapping[str, Any]) -> None:
        self.method = method
        self.constructed = constructed
        self.states: dict[int, State] = {}

    def keep(self, evaluation: int, optimizers: Sequence[Optimizer]) -> None:
        """Copy the method as it stands.

        Args:
            evaluation: Number of the evaluation.
            optimizers: Its optimisers, which do not predict.

        Raises:
            UserError: It holds something that cannot be copied.
        """
        method, backbones = self.method, self._backbones()
        left = [*vars(method.start).values(), *optimizers, *backbones, method]
        for module in method.modules():
            kinds = (WeakTensorKeyDictionary, *FUNCTIONS)
            left += [value for value in vars(module).values() if isinstance(value, kinds)]
        # What is made in inference mode could not be put back.
        with torch.inference_mode(False), torch.no_grad():
            try:
                attributes = deepcopy(own_attributes(method, self.constructed), {id(value): value for value in left})
            except Exception as error:  # whatever a class of the user's raises
                raise UserError(
                    f"criterion.evaluation: lazy needs copies of {type(method).__name__}, of which something cannot be "
                    f"copied ({type(error).__name__}: {error}); give every"
                ) from error
            self.states[evaluation] = attributes, [[each.clone() for each in tensors(one)] for one in backbones]

    def retain(self, evaluations: Sequence[int]) -> None:
        """Forget the states after all other evaluations.

        Args:
            evaluations: Those that may still be asked for.
        """
        self.states = {number: state for number, state in self.states.items() if number in evaluations}

    @contextmanager
    def at(self, evaluation: int) -> Iterator[None]:
        """Let the method be as it was after an evaluation, and then again as it is; as it is where no state is kept."""
        if evaluation not in self.states:
            yield
            return
        attributes, kept = self.states[evaluation]
        present, backbones = dict(vars(self.method)), self._backbones()
        state = own_attributes(self.method, self.constructed)
        _put(self.method, {name: value for name, value in present.items() if name not in state} | attributes)
        _exchange(backbones, kept)
        try:
            yield
        finally:
            _exchange(backbones, kept)
            _put(self.method, present)

    def _backbones(self) -> list[TrainableBackbone]:
        return [module for module in self.method.modules() if isinstance(module, TrainableBackbone)]


def tensors(backbone: TrainableBackbone) -> list[Tensor]:
    """Give the parameters and buffers of a backbone, as what is kept of it."""
    return [each.detach() for each in (*backbone.parameters(), *backbone.buffers())]


def _put(method: Method, attributes: dict[str, Any]) -> None:
    vars(method).clear()
    vars(method).update(attributes)


def _exchange(backbones: Sequence[TrainableBackbone], kept: Sequence[Sequence[Tensor]]) -> None:
    """Exchange what backbones hold and what was kept of them, without copying either."""
    with torch.inference_mode(False):
        for backbone, values in zip(backbones, kept, strict=True):
            for live, past in zip((*backbone.parameters(), *backbone.buffers()), values, strict=True):
                live.data, past.data = past.data, live.data
