"""The check that a method continues from a checkpoint as it would have gone on without one."""

import io
from collections.abc import Callable
from inspect import getmro
from typing import Any, TypeVar

import torch

from headstart.modules.counted import Counted
from headstart.modules.method_state import MethodState
from headstart.modules.provenance import own_modules, values_outside
from headstart.modules.state_pickling import pickling, storage_problem

Result = TypeVar("Result")
ELSEWHERE = "it changes values of a module or a class, which no checkpoint has"
DIFFERENT = (
    "a copy of it from a checkpoint predicts something else after the next batch: a part of its state is not in its "
    "attributes, or two of them share memory"
)


class ResumeCheck:
    """Compares a method with a copy of it that went through a checkpoint, after both have learnt from the next batches.

    It is done after evaluations 1, 2, 4, 8 and so on of a process. A problem that is found changes no result: the
    method is only not continued from checkpoints.

    Args:
        state: The state of the method.

    Attributes:
        problem: Why the method cannot be continued; empty where nothing is known.
        is_checked: Whether the method agreed with a copy.
    """

    def __init__(self, state: MethodState) -> None:
        self.state = state
        self.problem, self.is_checked = "", False
        self._evaluations = 0
        self._copy: dict[str, Any] | None = None
        self._outside = ""
        # By the classes that reach them. They are found once, because finding them takes long.
        self._own_modules: dict[frozenset[type], list[str]] = {}

    @property
    def is_pending(self) -> bool:
        """Whether a copy is compared at the next evaluation."""
        return self._copy is not None

    def reset(self) -> None:
        """Drop the copy, because the method restarts."""
        self._copy = None

    def begin_if_due(self) -> None:
        """Copy the method as it is after an evaluation, where it is to be compared at the next one."""
        is_due = self._evaluations > 0 and self._evaluations & (self._evaluations - 1) == 0
        if self.is_pending or self.problem or not is_due:
            return
        held, start = {**self.state.held(), "past": {}}, self.state.method.start
        if storage_problem(held):
            return
        self._outside = self._values_outside()
        stored = io.BytesIO()
        try:
            torch.save(held, stored, pickling(start))
            stored.seek(0)
            self._copy = torch.load(stored, None, pickling(start), weights_only=False)
        # A class of the user's may raise any error.
        except Exception as error:
            self.problem = f"{type(error).__name__}: {error}"

    def repeat(self, action: Callable[[], Result]) -> Result | None:
        """Do with the copy what was just done with the method.

        Args:
            action: What was done.

        Returns:
            Its result; None where there is no copy, or it shows that the method cannot be continued.
        """
        if self._copy is None:
            return None
        # The copy would change these values once more, so they are compared first.
        if self._values_outside() != self._outside:
            self.problem, self._copy = ELSEWHERE, None
            return None
        is_training = self.state.method.training
        try:
            with self.state.replaced(self._copy):
                if not is_training:
                    self.state.method.eval()
                return action()
        # A class of the user's may raise any error.
        except Exception as error:
            self.problem, self._copy = f"a copy of it from a checkpoint fails, {type(error).__name__}: {error}", None
            return None

    def count(self, evaluate: Callable[[], Counted], counted: Counted | None) -> None:
        """Count an evaluation, and compare the copy, if there is one.

        Args:
            evaluate: Evaluates the first chunk of the validation set.
            counted: The evaluation of the method, if it was made.
        """
        self._evaluations += 1
        if not self.is_pending:
            return
        live = counted or evaluate()
        repeated = self.repeat(evaluate)
        self._copy = None
        if repeated is not None:
            self.is_checked = repeated.agrees(Counted(live.counts, live.predictions[:1]))
            self.problem = "" if self.is_checked else DIFFERENT

    def _values_outside(self) -> str:
        kinds = frozenset(kind for module in self.state.method.modules() for kind in getmro(type(module)))
        if kinds not in self._own_modules:
            self._own_modules[kinds] = own_modules(kinds)
        return values_outside(kinds, self._own_modules[kinds])
