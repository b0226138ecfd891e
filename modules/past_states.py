"""The last states of a method, as far as its predictions depend on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.weak import WeakTensorKeyDictionary

from modules.checkpoint import own_attributes, why_not
from modules.method import Method
from modules.networks.trainable_backbone import TrainableBackbone
from output.errors import UserError

TENSORS = ("_parameters", "_buffers")
# What belongs to the present of a backbone: its modules stay, and it folds them for itself.
OF_NOW = ("_modules", "_folded", "_is_evaluated", "training")


class Kept:
    """A copy of the state of a backbone's modules, which changes places with the present one.

    Args:
        backbone: The backbone.
    """

    def __init__(self, backbone: nn.Module) -> None:
        self.modules = {name: dict(module._modules) for name, module in backbone.named_modules()}
        self.tensors: dict[str, dict[str, dict[str, Tensor | None]]] = {}
        self.attributes: dict[str, dict[str, Any]] = {}
        for name, module in backbone.named_modules():
            values = vars(module)
            self.tensors[name] = {kind: {key: _clone(each) for key, each in values[kind].items()} for kind in TENSORS}
            own = {key: each for key, each in values.items() if key not in (*OF_NOW, *TENSORS)}
            self.attributes[name] = deepcopy(own, {id(module): module})

    def exchange(self, backbone: nn.Module) -> None:
        """Put the copy in the place of the present state, and keep that.

        Args:
            backbone: The backbone.
        """
        present = {name: dict(module._modules) for name, module in backbone.named_modules()}
        for name, children in self.modules.items():
            backbone.get_submodule(name)._modules = children  # a parent comes before its children
        self.modules = present
        for name, module in backbone.named_modules():
            if name not in self.tensors:
                continue  # it was not there then
            values = vars(module)
            for kind in TENSORS:
                _exchange_tensors(values[kind], self.tensors[name][kind])
            own = {key: each for key, each in values.items() if key not in (*OF_NOW, *TENSORS)}
            for key in own:
                del values[key]
            values.update(self.attributes[name])
            self.attributes[name] = own


def _clone(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.detach().clone()


def _exchange_tensors(live: dict[str, Tensor | None], kept: dict[str, Tensor | None]) -> None:
    """Exchange what tensors hold, so that whoever refers to them, such as an optimiser, still does."""
    for key, tensor in live.items():
        other = kept[key]
        if tensor is not None and other is not None:
            tensor.data, other.data = other.data, tensor.data


class PastStates:
    """Copies of a method after some evaluations, into which it can be put back to predict.

    A copy is of the method's attributes, with all that they hold but optimisers, what only saves time (weak
    dictionaries), and what all methods share. The modules of a backbone stay, with copies of what they hold.

    Args:
        method: The method.
        constructed: Its attributes as the constructor left them.

    Attributes:
        states: Copies by the number of their evaluation.
    """

    def __init__(self, method: Method, constructed: Mapping[str, Any]) -> None:
        self.method = method
        self.constructed = constructed
        self.states: dict[int, tuple[dict[str, Any], list[Kept]]] = {}
        self._is_copied_whole = False

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
        if not self._is_copied_whole:
            # A function that refers to what is copied would still refer to the present.
            self._refuse(why_not({"attributes": attributes}))
            self._is_copied_whole = True
        left = [*vars(method.start).values(), *optimizers, *backbones, method]
        for module in method.modules():
            left += [value for value in vars(module).values() if isinstance(value, WeakTensorKeyDictionary)]
        # What is made in inference mode could not be put back.
        with torch.inference_mode(False), torch.no_grad():
            try:
                copied = deepcopy(attributes, {id(value): value for value in left}), [Kept(one) for one in backbones]
            except (MemoryError, RuntimeError):
                raise
            except Exception as error:  # whatever a class of the user's raises
                self._refuse(f"{type(error).__name__}: {error}")
            self.states[evaluation] = copied

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
        """Give those of its own, without the one that all share."""
        own = [module for module in self.method.modules() if module is not self.method.start.backbone]
        return [module for module in own if isinstance(module, TrainableBackbone)]


def _put(method: Method, attributes: dict[str, Any]) -> None:
    vars(method).clear()
    vars(method).update(attributes)


def _exchange(backbones: Sequence[TrainableBackbone], kept: Sequence[Kept]) -> None:
    with torch.inference_mode(False):
        for backbone, state in zip(backbones, kept, strict=True):
            state.exchange(backbone)
