"""Lazy evaluation of one method: only requested evaluations are made, past ones on copies of the method."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from types import FunctionType, MethodType
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakTensorKeyDictionary

from headstart.modules.memory_errors import explain_memory_errors
from headstart.modules.method import Method
from headstart.modules.method_state import MethodState
from headstart.output.errors import UserError

# The inputs and labels of the validation set, which can be iterated over several times.
Chunks = Iterable[tuple[Tensor, Tensor]]
# Evaluates a method, or a copy of it, as `count_predictions` does.
Count = Callable[[Method, Chunks], Tensor]


class Chooser(Protocol):
    """Chooses which evaluations of a comparison are made, if not all of them are."""

    @property
    def now(self) -> int | None:
        """Number of the present evaluation; None where it is not part of the protocol."""

    def wanted(self, method: int) -> int | None:
        """Return the number of the next evaluation to make of a method; None if it has to learn more first."""

    def record(self, method: int, evaluation: int, correct: NDArray[np.int64], not_finite: NDArray[np.int64]) -> None:
        """Record the counts of an evaluation of a method, `[orderings]`."""

    def needed(self, method: int) -> list[int]:
        """Return the evaluations up to now that may still be requested of a method, in order."""


class LazyEvaluation:
    """Makes the requested evaluations of one method in one pass, and copies it for those that may be requested later.

    Args:
        method: Index of the method.
        state: The method, with its optimisers.
        chooser: The object that requests evaluations.
        count: Evaluates the method or a copy.

    Attributes:
        past: Copies of the method for evaluations that may still be requested, by number.
    """

    def __init__(self, method: int, state: MethodState, chooser: Chooser, count: Count) -> None:
        self.method, self.state, self.chooser = method, state, chooser
        self._count = count
        self.past: dict[int, Method] = {}

    def make(self, now: int, chunks: Chunks) -> None:
        """Make the evaluations that are requested now.

        Args:
            now: Number of the present evaluation.
            chunks: The validation set.

        Raises:
            UserError: An attribute of the method cannot be copied, or a copy cannot be evaluated.
        """
        while (evaluation := self.chooser.wanted(self.method)) is not None:
            present = evaluation == now
            counted = self._count(self.state.method, chunks) if present else self._count_past(evaluation, chunks)
            self.chooser.record(self.method, evaluation, *counted.cpu().numpy())

        needed = self.chooser.needed(self.method)
        self.past = {number: method for number, method in self.past.items() if number in needed}
        if now in needed and now not in self.past:
            self.past[now] = copy_of(self.state)

    def _count_past(self, evaluation: int, chunks: Chunks) -> Tensor:
        try:
            return self._count(self.past[evaluation], chunks)
        except UserError:
            raise
        # A class of the user's may raise any error.
        except Exception as error:
            raise UserError(
                f"criterion.evaluation: lazy evaluates a copy of {type(self.state.method).__name__}, but that fails "
                f"({type(error).__name__}: {error}); give every"
            ) from error


def copy_of(state: MethodState) -> Method:
    """Return a deep copy of a method that shares the start and the optimisers of the original.

    Args:
        state: The method, with its optimisers.

    Raises:
        UserError: An attribute of the method, such as a function that refers to the method, cannot be copied, or memory
            does not suffice.
    """
    method = state.method
    # Weak dictionaries are caches, which copies may share.
    values = [value for part in method.modules() for value in vars(part).values()]
    weak = [value for value in values if isinstance(value, WeakTensorKeyDictionary)]
    # Attributes outside of the state are shared: functions from the constructor, for example, may refer to anything.
    # Bound methods are copied, so that they refer to the copy.
    in_state = state.attributes()
    others = [value for name, value in vars(method).items() if name not in in_state]
    others = [value for value in others if not isinstance(value, MethodType)]
    shared = [method.start, *vars(method.start).values(), *state.optimizers, *weak, *others]
    subject = f"criterion.evaluation: a copy of {type(method).__name__}, of up to ten,"
    try:
        # Training could not change tensors that were created in inference mode.
        with (
            explain_memory_errors(subject, "give every, or a smaller network"),
            torch.inference_mode(False),
            torch.no_grad(),
        ):
            _require_no_closures(method, {id(value): value for value in shared})
            return deepcopy(method, {id(value): value for value in shared})
    except UserError:
        raise
    # A class of the user's may raise any error.
    except Exception as error:
        raise UserError(
            f"criterion.evaluation: lazy needs copies of {type(method).__name__}, of which something cannot be copied "
            f"({type(error).__name__}: {error}); give every"
        ) from error


def _require_no_closures(method: Method, shared: dict[int, object]) -> None:
    """Raise a UserError if a function in the method's attributes refers to variables that a copy would copy.

    Args:
        method: The method.
        shared: Objects that a copy shares with the method, by `id`.
    """
    for part in method.modules():
        for value in tree_leaves(vars(part)):
            if isinstance(value, FunctionType) and _closes_over_state(value, shared):
                raise UserError(
                    f"criterion.evaluation: lazy evaluates copies of {type(method).__name__}, but its function "
                    f"{value.__qualname__} refers to variables that have to be copied, too, such as self; make it a "
                    "method of the class, or give every"
                )


def _closes_over_state(function: FunctionType, shared: dict[int, object]) -> bool:
    for cell in function.__closure__ or ():
        value = cell.cell_contents
        inner = isinstance(value, FunctionType) and value is not function and _closes_over_state(value, shared)
        # `deepcopy` returns an immutable value itself.
        if inner or deepcopy(value, dict(shared)) is not value:
            return True
    return False
