"""The state of a method: as its constructor left it, and as its batches have changed it."""

from collections import deque
from collections.abc import Mapping
from copy import copy, deepcopy
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from lightning.pytorch import LightningModule
from torch import nn
from torch.optim import Optimizer
from torch.utils.weak import WeakTensorKeyDictionary

from headstart.modules.global_generators import GlobalGenerators
from headstart.modules.method import Method, MethodStart

# These attributes of a method belong to Lightning, or follow from the stream.
NOT_OWN = vars(LightningModule()).keys() - vars(nn.Module()).keys() | {"start"}
FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType, partial, type)


class MethodState:
    """Everything of a method that its batches change: its attributes, its optimisers and its global generators.

    It does not include functions from the constructor, the method's own functions, Lightning's own attributes, and weak
    dictionaries, which only save time.

    Args:
        method: The method, as its constructor left it.

    Attributes:
        method: The method.
        optimizers: Its optimisers.
        generators: Its states of the global generators.
    """

    generators: GlobalGenerators

    def __init__(self, method: Method) -> None:
        self.method = method
        self.optimizers: list[Optimizer] = []
        self._constructed = _copy_attributes(method, vars(method))

    def reset(self, start: MethodStart) -> None:
        """Restore what the constructor left, before the method begins.

        Args:
            start: What the method starts from.
        """
        vars(self.method).clear()
        vars(self.method).update(_copy_attributes(self.method, self._constructed))
        self.generators = GlobalGenerators(start.seed, start.device)
        self.optimizers = []

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the method that are part of its state; they are not copies."""
        return {
            name: value
            for name, value in vars(self.method).items()
            if name not in NOT_OWN
            and not isinstance(value, WeakTensorKeyDictionary)
            and not (isinstance(value, MethodType) and value.__self__ is self.method)
            and not (isinstance(value, FUNCTIONS) and self._constructed.get(name) is value)
        }

    def held(self) -> dict[str, Any]:
        """Return the parts of the state, which are not copies."""
        return {"attributes": self.attributes(), "optimizers": list(self.optimizers), "generators": self.generators}

    def restore(self, stored: Mapping[str, Any]) -> None:
        """Restore a state.

        Args:
            stored: The state, as `held` returned it.
        """
        for name in self.attributes():
            del vars(self.method)[name]
        vars(self.method).update(stored["attributes"])
        self.optimizers, self.generators = stored["optimizers"], stored["generators"]


def _copy_attributes(method: nn.Module, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Copy attributes deeply; where one cannot be copied, copy only its outermost container."""
    # Functions are known by their identity, which a copy of a partial one would lose.
    same = [method, *(value for value in attributes.values() if isinstance(value, FUNCTIONS))]
    copies, memo = dict[str, Any](), {id(value): value for value in same}
    for name, value in attributes.items():
        try:
            copies[name] = deepcopy(value, memo)
        # A class of the user's may raise any error.
        except Exception:
            copies[name] = copy(value) if isinstance(value, dict | list | set | deque) else value
    return copies
