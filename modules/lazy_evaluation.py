"""Lazy evaluation of one method: the requested evaluations, and the check that its past is as it was."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from headstart.modules.counted import Counted
from headstart.modules.method_state import MethodState
from headstart.modules.stream import Chooser, Chunks
from headstart.output.errors import UserError

# Validation samples, evenly spaced, that the first state of a pass predicts.
FEW = 32


@dataclass
class EvaluatedState:
    """A state that was evaluated while it was present, and is evaluated again from its copy.

    Attributes:
        evaluation: Number of its evaluation.
        chunks: What it was evaluated on.
        counted: The result.
    """

    evaluation: int
    chunks: Chunks
    counted: Counted


class LazyEvaluation:
    """Makes the requested evaluations of one method in one pass, and keeps its state where it may be needed later.

    A state of the past is evaluated as if it were present, so the method must hold all of its state. That is checked
    where states of the past are first evaluated, and at the end. A state that was evaluated while it was present, the
    witness, is put back and evaluated again.

    Args:
        name: Name of the method.
        method: Its index among the methods.
        state: Its state.
        chooser: The object that requests evaluations.
        count: Evaluates the method as it is.
    """

    def __init__(
        self, name: str, method: int, state: MethodState, chooser: Chooser, count: Callable[[Chunks], Counted]
    ) -> None:
        self.name, self.method, self.state, self.chooser = name, method, state, chooser
        self._count = count
        self._witness: EvaluatedState | None = None
        self._is_checked = False

    def make(self, now: int, chunks: Chunks) -> None:
        """Make the evaluations that are requested now.

        Args:
            now: Number of the present evaluation.
            chunks: The validation set.

        Raises:
            UserError: The method changes where it predicts, or holds only a part of its state.
        """
        present: EvaluatedState | None = None
        while (evaluation := self.chooser.wanted(self.method)) is not None:
            if evaluation == now:
                counted = self._count_unchanged(chunks)
                present = EvaluatedState(now, chunks, counted)
            else:
                if not self._is_checked:
                    self.require_past_unchanged()
                    self._is_checked, self._witness = True, None
                counted = self._count_past(evaluation, chunks)
            self.chooser.take(self.method, evaluation, *counted.counts.cpu().numpy())

        if self._witness is None or not self._is_checked:
            self._witness = present or self._witness or self._first(now, chunks)
        self._keep(now)

    def _first(self, now: int, chunks: Chunks) -> EvaluatedState:
        """Return the first state of a pass as a witness, evaluated on a few samples."""
        inputs, labels = (torch.cat(parts) for parts in zip(*chunks, strict=True))
        step = max(1, len(labels) // FEW)
        few = [(inputs[::step].clone(), labels[::step].clone())]
        return EvaluatedState(now, few, self._count_unchanged(few))

    def _keep(self, now: int) -> None:
        needed = set(self.chooser.needed(self.method))
        if self._witness is not None:
            needed.add(self._witness.evaluation)
        self.state.retain(sorted(needed))
        if now in needed and now not in self.state.past:
            self.state.keep(now)

    def _count_unchanged(self, chunks: Chunks) -> Counted:
        before = self.state.footprint()
        counted = self._count(chunks)
        if self.state.footprint() != before:
            raise UserError(
                f"criterion.evaluation: lazy leaves evaluations out, but {self.name} changes its state where it "
                "predicts; give every"
            )
        self.state.compared += 1
        return counted

    def _count_past(self, evaluation: int, chunks: Chunks) -> Counted:
        with self.state.at(evaluation):
            try:
                return self._count_unchanged(chunks)
            except UserError:
                raise
            # A class of the user's may raise any error.
            except Exception as error:
                raise UserError(
                    f"criterion.evaluation: lazy evaluates {self.name} in an earlier state, but that fails "
                    f"({type(error).__name__}: {error}); give every"
                ) from error

    def require_past_unchanged(self) -> None:
        """Evaluate the witness again.

        Raises:
            UserError: It comes out differently.
        """
        witness = self._witness
        if witness is None or witness.evaluation not in self.state.past:
            return
        if not self._count_past(witness.evaluation, witness.chunks).agrees(witness.counted):
            raise UserError(
                f"criterion.evaluation: lazy evaluates {self.name} in earlier states, but in one of them it now "
                "predicts something else than it did then: a part of its state is not in its attributes but in a "
                "global, its class, an optimiser or the trainer; give every"
            )
