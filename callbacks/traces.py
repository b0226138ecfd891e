"""The traces of one comparison: those that the ledger has, and those that this run measures."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.sample_efficiency.curves import NOT_EVALUATED, SKIPPED, samples_to_criterion
from headstart.store.ledger import RunLedger, Trace, TraceKey

# What was measured in the last seconds is lost where the process is killed.
SECONDS_BETWEEN_WRITES = 2.0


@dataclass(frozen=True)
class Grid:
    """Where a comparison is evaluated, and when a trace has met the criterion.

    Attributes:
        samples_seen: Samples that an ordering has fed at each evaluation up to the sample limit, `[evaluations]`.
        all_correct: The count of correct predictions where all are.
        required: Lowest count that passes.
        consecutive: Evaluations in a row at which it is needed.
    """

    samples_seen: NDArray[np.int64]
    all_correct: int
    required: int
    consecutive: int


class Traces:
    """The traces of every method and ordering of a comparison.

    A trace is as long as it was measured: to the sample limit, or until the methods that were measured with it had
    met the criterion. It serves this comparison where it has itself met the criterion or reaches the limit, and is
    missing otherwise.

    Attributes:
        correct: Counts of correct predictions, `[evaluations, methods, orderings]`, `NOT_EVALUATED` where there
            is none, `SKIPPED` where lazy evaluation has left one out so far.
        diverged: The first evaluation at which a prediction was not finite, `[methods, orderings]`, `NOT_EVALUATED`
            where all were.
        running: Which traces are being measured, `[methods, orderings]`.
        measured: Which traces this run measures or has measured, `[methods, orderings]`.
        changed: Which of those came out differently from what was stored, `[methods, orderings]`.

    Args:
        ledger: Where traces are stored.
        stream: Digest of what is fed.
        methods: Digests of the methods.
        orderings: Numbers of the orderings.
        grid: Where is evaluated.
        recompute: Measure all traces, whatever is stored.
        evaluated: Digest of the same stream where every evaluation is made, whose finished traces serve as well.
    """

    def __init__(
        self,
        ledger: RunLedger,
        stream: str,
        methods: Sequence[str],
        orderings: Sequence[int],
        grid: Grid,
        recompute: bool = False,
        evaluated: str | None = None,
    ) -> None:
        self.ledger = ledger
        self._evaluated = evaluated
        self.grid = grid
        self.keys = [[TraceKey(stream, method, ordering) for ordering in orderings] for method in methods]
        shape = len(methods), len(orderings)
        # Set aside at once: small blocks kept from every evaluation would scatter over the heap and make it grow.
        self.correct = np.full((len(grid.samples_seen), *shape), NOT_EVALUATED, dtype=np.int64)
        self.diverged = np.full(shape, NOT_EVALUATED, dtype=np.int64)
        self.measured = np.zeros(shape, dtype=bool)
        self.changed = np.zeros(shape, dtype=bool)
        self._stored: dict[TraceKey, Trace] = {}
        self.running = np.zeros(shape, dtype=bool)
        self._unfinished = np.zeros(shape, dtype=bool)
        self.recompute = recompute
        self._wanted_again = np.full(shape, recompute)
        self.reload()
        self._written = time.monotonic()

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of evaluations of each trace, `[methods, orderings]`."""
        lengths: NDArray[np.int64] = (self.correct != NOT_EVALUATED).sum(0)
        return lengths

    @property
    def met_at(self) -> NDArray[np.float64]:
        """Samples at which each trace has met the criterion, infinite where it has not, `[methods, orderings]`."""
        counts = np.moveaxis(self.correct, 0, -1)
        return samples_to_criterion(counts, self.grid.samples_seen, self.grid.required, self.grid.consecutive)[0]

    @property
    def met(self) -> NDArray[np.bool_]:
        """Which traces have met the criterion, `[methods, orderings]`."""
        met: NDArray[np.bool_] = np.isfinite(self.met_at)
        return met

    @property
    def streaks(self) -> NDArray[np.int64]:
        """Evaluations in a row, up to its end, at which a trace has what is required, `[methods, orderings]`."""
        numbers = np.arange(1, len(self.correct) + 1)[:, None, None]
        fails = (self.correct != NOT_EVALUATED) & (self.correct < self.grid.required)
        streaks: NDArray[np.int64] = self.lengths - np.where(fails, numbers, 0).max(0, initial=0)
        return streaks

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which traces are not there as far as the comparison needs them, `[methods, orderings]`."""
        whole = self.lengths == len(self.correct)
        missing: NDArray[np.bool_] = ~whole & (~self.met | self._unfinished) | self._wanted_again
        return missing

    def reload(self) -> None:
        """Read from the ledger what this run has not measured itself."""
        places = np.argwhere(~self.measured).tolist()
        others = self._of_evaluated(places)
        self._stored |= self.ledger.read({self.keys[m][k] for m, k in places})
        for m, k in places:
            trace = others.get(self.keys[m][k]) or self._stored.get(self.keys[m][k])
            if trace is not None:
                end = min(len(trace.correct), len(self.correct))
                self.correct[:end, m, k] = trace.correct[:end]
                diverged = trace.diverged
                self.diverged[m, k] = NOT_EVALUATED if diverged is None or diverged >= end else diverged
                self._unfinished[m, k] = trace.open

    def _of_evaluated(self, places: list[list[int]]) -> dict[TraceKey, Trace]:
        """Read finished traces of which every evaluation was made, by the keys that they have here."""
        if self._evaluated is None:
            return {}
        keys = {replace(self.keys[m][k], stream=self._evaluated): self.keys[m][k] for m, k in places}
        found = {keys[key]: trace for key, trace in self.ledger.read(keys).items() if not trace.open}
        return {key: trace for key, trace in found.items() if self._serves(trace)}

    def _serves(self, trace: Trace) -> bool:
        """Say whether a trace meets the criterion, or reaches the limit."""
        end, grid = min(len(trace.correct), len(self.correct)), self.grid
        met, _ = samples_to_criterion(trace.correct[:end], grid.samples_seen[:end], grid.required, grid.consecutive)
        return end == len(self.correct) or bool(np.isfinite(met))

    def claim(self) -> tuple[NDArray[np.bool_] | None, str | None]:
        """Claim the missing traces for this process.

        Returns:
            The missing traces that this process is to measure, `[methods, orderings]`, None where there are none; and
            the name of another process that measures some of the missing ones, None where there is none.
        """
        missing = self.missing
        held = self.ledger.claim({self.keys[m][k] for m, k in np.argwhere(missing).tolist()})
        # Another process may have finished some before it gave them up.
        self.reload()
        free = np.array([[key not in held for key in row] for row in self.keys])
        claimed = missing & self.missing & free
        return claimed if claimed.any() else None, next(iter(held.values()), None)

    def give_up(self, claimed: NDArray[np.bool_]) -> None:
        """Leave claimed traces for later, or for another process.

        Args:
            claimed: Which, `[methods, orderings]`.
        """
        self.ledger.give_up({self.keys[m][k] for m, k in np.argwhere(claimed).tolist()})

    def begin(self, chosen: NDArray[np.bool_], known: NDArray[np.int64] | None = None) -> None:
        """Begin to measure traces, or go on with them.

        Args:
            chosen: Which, `[methods, orderings]`.
            known: What was known of them where they go on, as `correct` is.
        """
        self.measured |= chosen
        self.running = chosen.copy()
        evaluations = 0 if known is None else len(known)
        if known is not None:
            self.correct[:evaluations, chosen] = known[:, chosen]
        self._before = dict(self._stored)
        self._wanted_again &= ~chosen
        self.correct[evaluations:, chosen] = NOT_EVALUATED
        self.diverged[chosen & (self.diverged >= evaluations)] = NOT_EVALUATED
        self._unfinished[chosen] = True

    def add(self, evaluation: int, correct: NDArray[np.int64], not_finite: NDArray[np.int64]) -> None:
        """Take the counts of one evaluation.

        Args:
            evaluation: Its number, from 0.
            correct: Counts of correct predictions, `[methods, orderings]`; only those of traces that are measured
                are taken.
            not_finite: Predictions that are not finite, likewise.
        """
        running = self.running
        self.correct[evaluation][running] = correct[running]
        new = running & (not_finite > 0) & (self.diverged == NOT_EVALUATED)
        self.diverged[new] = evaluation

    def skip(self, evaluation: int) -> None:
        """Note that the methods have come to an evaluation, which is not made yet.

        Args:
            evaluation: Its number, from 0.
        """
        self.correct[evaluation][self.running] = SKIPPED

    def leave_out(self, evaluation: int) -> None:
        """Note that the methods were cut off before it was decided about an evaluation.

        Args:
            evaluation: Its number, from 0.
        """
        self.correct[evaluation][self.running] = NOT_EVALUATED

    def take(self, evaluation: int, method: int, ordering: int, correct: int, not_finite: int) -> None:
        """Take an evaluation of one trace.

        Args:
            evaluation: Its number, from 0.
            method: Place of its method.
            ordering: Place of its ordering.
            correct: Correct predictions.
            not_finite: Predictions that are not finite.
        """
        self.correct[evaluation, method, ordering] = correct
        if not_finite and not 0 <= self.diverged[method, ordering] < evaluation:
            self.diverged[method, ordering] = evaluation

    def write_if_due(self) -> None:
        """Store what has grown, now and then."""
        if time.monotonic() - self._written > SECONDS_BETWEEN_WRITES:
            self.write()

    def write(self) -> None:
        """Store what was measured of traces that go on, where it is more than is stored.

        What is measured again takes the place of a finished trace only when it is finished itself.
        """
        longer = {key: trace for key, trace in self._running_traces().items() if len(trace.correct) > self._length(key)}
        again = {key for key in longer if self.recompute and key in self._before and not self._before[key].open}
        self._store({key: trace for key, trace in longer.items() if key not in again})

    def finish(self, ended: NDArray[np.bool_]) -> None:
        """Store what was measured as finished, and note which traces came out differently from what was stored.

        Args:
            ended: The traces that do not go on, `[methods, orderings]`.
        """
        going_on, self.running = self.running & ~ended, self.running & ended
        self._unfinished[self.running] = False
        finished = self._running_traces()
        for m, k in np.argwhere(self.running).tolist():
            now = finished[self.keys[m][k]]
            before = self._before.get(self.keys[m][k], now)
            both = list(zip(before.correct.tolist(), now.correct.tolist(), strict=False))
            # What one left out, the other may have made.
            self.changed[m, k] = any(one != other and SKIPPED not in (one, other) for one, other in both)
            if not self.changed[m, k] and len(before.correct) > len(now.correct):
                finished[self.keys[m][k]] = replace(before, open=False)
        self._store(finished)
        self.ledger.give_up(finished)
        self.running = going_on

    def discard(self) -> None:
        """Forget what was measured of traces that go on, here and in the ledger."""
        self.correct[:, self.running] = NOT_EVALUATED
        self.diverged[self.running] = NOT_EVALUATED
        forgotten = self._running_traces()
        self._store({key: trace for key, trace in forgotten.items() if key in self._stored and self._stored[key].open})

    def _running_traces(self) -> dict[TraceKey, Trace]:
        lengths = self.lengths
        traces = {}
        for m, k in np.argwhere(self.running).tolist():
            correct, diverged = self.correct[: lengths[m, k], m, k], int(self.diverged[m, k])
            unfinished = bool(self._unfinished[m, k])
            traces[self.keys[m][k]] = Trace(correct, None if diverged == NOT_EVALUATED else diverged, unfinished)
        return traces

    def _length(self, key: TraceKey) -> int:
        return len(self._stored[key].correct) if key in self._stored else 0

    def _store(self, traces: dict[TraceKey, Trace]) -> None:
        self.ledger.write(traces)
        self._stored |= traces
        self._written = time.monotonic()
