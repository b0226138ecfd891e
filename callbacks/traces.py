"""The traces of one comparison: those that the ledger has, and those that this run measures."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.sample_efficiency.curves import NOT_EVALUATED, samples_to_criterion
from headstart.modules.running_code import user_modules
from headstart.store.ledger_file import Trace, TraceKey
from headstart.store.ledger_reader import RunLedger


@dataclass(frozen=True)
class Grid:
    """The evaluations of a comparison, and when a trace has met the criterion.

    Attributes:
        samples_seen: Samples that an ordering has fed at each evaluation up to the sample limit, `[evaluations]`.
        all_correct: The count if all predictions are correct.
        required: Lowest count that passes.
        consecutive: Number of passes in a row that meet the criterion.
        to_limit: Whether a trace that has met the criterion continues to the sample limit.
    """

    samples_seen: NDArray[np.int64]
    all_correct: int
    required: int
    consecutive: int
    to_limit: bool = False


class Traces:
    """The traces of every method and ordering of a comparison.

    A trace ends at the sample limit, or when all methods that were measured with it had met the criterion. It is
    missing unless it has itself met the criterion, where that suffices, or reaches the limit. It is also missing while
    its pass runs, and after that was cut off.

    Attributes:
        correct: Counts of correct predictions, `[evaluations, methods, orderings]`, `NOT_EVALUATED` where there is
            none, `SKIPPED` where lazy evaluation has left one out so far.
        diverged: The first evaluation at which a prediction was not finite, `[methods, orderings]`, `NOT_EVALUATED`
            where all were finite.
        drew: Whether the method drew random numbers for several orderings at once, `[methods, orderings]`.
        running: Traces that are being measured in the present pass, `[methods, orderings]`.
        measured: Traces that this run measures or has measured, `[methods, orderings]`.
        imported: Names of own modules that methods have imported while they ran.

    Args:
        ledger: The ledger that stores traces.
        stream: Digest of the stream.
        methods: Digests of the methods.
        orderings: Numbers of the orderings.
        grid: The evaluations.
        recompute: Measure all traces, stored ones, too.
        eager_stream: For lazy evaluation, the digest of the same stream with every evaluation. Its finished traces are
            used as well, except those with random numbers that were drawn for several orderings at once.
        own: Digests of methods of the user's own: they are stored no more once they import another own module.
        unstored: Digests of methods whose code is not known: their traces are neither read nor stored.
        loaded: Names of the own modules that the digests contain.
    """

    def __init__(
        self,
        ledger: RunLedger,
        stream: str,
        methods: Sequence[str],
        orderings: Sequence[int],
        grid: Grid,
        recompute: bool = False,
        eager_stream: str | None = None,
        own: Collection[str] = (),
        unstored: Collection[str] = (),
        loaded: Collection[str] = (),
    ) -> None:
        self.ledger, self.grid = ledger, grid
        self._own, self._unstored, self._loaded = set(own), set(unstored), set(loaded)
        self.imported: list[str] = []
        self._eager_stream = eager_stream
        self.keys = [[TraceKey(stream, method, ordering) for ordering in orderings] for method in methods]

        shape = len(methods), len(orderings)
        # Allocated at once: small blocks kept from every evaluation would scatter over the heap and make it grow.
        self.correct = np.full((len(grid.samples_seen), *shape), NOT_EVALUATED, dtype=np.int64)
        self.diverged = np.full(shape, NOT_EVALUATED, dtype=np.int64)
        self.drew = np.zeros(shape, dtype=bool)
        self.measured = np.zeros(shape, dtype=bool)
        self.running = np.zeros(shape, dtype=bool)
        self._unfinished, self._passed = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        self._to_recompute = np.full(shape, recompute)
        self.reload()

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of evaluations of each trace, `[methods, orderings]`."""
        lengths: NDArray[np.int64] = (self.correct != NOT_EVALUATED).sum(0)
        return lengths

    @property
    def met_at(self) -> NDArray[np.float64]:
        """Samples at which each trace has met the criterion, infinite if it has not, `[methods, orderings]`."""
        counts = np.moveaxis(self.correct, 0, -1)
        return samples_to_criterion(counts, self.grid.samples_seen, self.grid.required, self.grid.consecutive)[0]

    @property
    def met(self) -> NDArray[np.bool_]:
        """Return whether each trace has met the criterion, `[methods, orderings]`."""
        return self.met_at < np.inf

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Return whether each trace is still to be measured, `[methods, orderings]`."""
        whole = self.lengths == len(self.correct)
        is_short = ~self.met | self._unfinished | self.grid.to_limit
        missing: NDArray[np.bool_] = ~whole & is_short | self._to_recompute
        return missing

    @property
    def reused(self) -> NDArray[np.bool_]:
        """Return whether each trace was finished in the ledger, `[methods, orderings]`."""
        return ~self.measured & ~self.missing

    def reload(self) -> None:
        """Read traces from the ledger, except those that this run has measured."""
        indices = [(m, k) for m, k in np.argwhere(~self.measured).tolist() if self._is_stored(self.keys[m][k])]
        traces = self.ledger.read({self.keys[m][k] for m, k in indices}) | self._read_eager(indices)
        for m, k in indices:
            trace = traces.get(self.keys[m][k])
            if trace is None:
                continue
            end = min(len(trace.correct), len(self.correct))
            self.correct[:end, m, k] = trace.correct[:end]
            diverged = trace.diverged
            self.diverged[m, k] = NOT_EVALUATED if diverged is None or diverged >= end else diverged
            self.drew[m, k] = trace.drew
            self._unfinished[m, k] = False

    def _read_eager(self, indices: Sequence[tuple[int, int]]) -> dict[TraceKey, Trace]:
        """Read finished traces with every evaluation, by their keys in this comparison."""
        if self._eager_stream is None:
            return {}
        keys = {replace(self.keys[m][k], stream=self._eager_stream): self.keys[m][k] for m, k in indices}
        traces = self.ledger.read(keys)
        return {keys[key]: trace for key, trace in traces.items() if not trace.drew and self._serves(trace)}

    def record_draws(self, methods: Iterable[int]) -> None:
        """Record that methods draw random numbers in this pass for several orderings, so that one alone would differ.

        Args:
            methods: Their indices.
        """
        for method in methods:
            self.drew[method] |= self._passed[method]

    def _serves(self, trace: Trace) -> bool:
        """Return whether a trace meets the criterion, or reaches the limit."""
        end, grid = min(len(trace.correct), len(self.correct)), self.grid
        met, _ = samples_to_criterion(trace.correct[:end], grid.samples_seen[:end], grid.required, grid.consecutive)
        return end == len(self.correct) or bool(np.isfinite(met))

    def claim(self) -> tuple[NDArray[np.bool_] | None, str | None]:
        """Claim the missing traces for this process.

        Returns:
            The missing traces that this process is to measure, `[methods, orderings]`, None if there are none; and the
            name of another process that measures some of the missing ones, None if there is none.
        """
        missing = self.missing
        keys = {self.keys[m][k] for m, k in np.argwhere(missing).tolist()}
        holders = self.ledger.claim(set(filter(self._is_stored, keys)))
        # Another process may have finished some before it released them.
        self.reload()
        free = np.array([[key not in holders for key in row] for row in self.keys])
        claimed = missing & self.missing & free
        return claimed if claimed.any() else None, next(iter(holders.values()), None)

    def release(self, claimed: NDArray[np.bool_]) -> None:
        """Release claimed traces, for later or for another process.

        Args:
            claimed: The traces, `[methods, orderings]`.
        """
        self.ledger.release({self.keys[m][k] for m, k in np.argwhere(claimed).tolist()})

    def begin(self, chosen: NDArray[np.bool_]) -> None:
        """Begin a pass, which measures traces.

        Args:
            chosen: The traces, `[methods, orderings]`.
        """
        self.measured |= chosen
        self.running, self._passed = chosen.copy(), chosen.copy()
        self.correct[:, chosen] = NOT_EVALUATED
        self.diverged[chosen] = NOT_EVALUATED
        self.drew[chosen] = False
        self._to_recompute &= ~chosen
        self._unfinished[chosen] = True

    def add(
        self,
        evaluation: int,
        counted: NDArray[np.bool_],
        correct: NDArray[np.int64],
        not_finite: NDArray[np.int64],
    ) -> None:
        """Add the counts of one evaluation.

        Args:
            evaluation: Its number, from 0.
            counted: The traces that were evaluated, `[methods, orderings]`.
            correct: Counts of correct predictions, `[methods, orderings]` or of a shape that is broadcast to it.
            not_finite: Counts of predictions that are not finite, likewise.
        """
        self.correct[evaluation] = np.where(counted, correct, self.correct[evaluation])
        # Lazy evaluation may make an earlier evaluation after a later one.
        earlier = (self.diverged != NOT_EVALUATED) & (self.diverged < evaluation)
        self.diverged[counted & (not_finite > 0) & ~earlier] = evaluation

    def mark(self, evaluation: int, value: int) -> None:
        """Mark an evaluation of the running traces.

        Args:
            evaluation: Its number, from 0.
            value: `SKIPPED` where the methods have learnt up to it and it may be made later; `NOT_EVALUATED` where they
                were cut off before that was decided.
        """
        self.correct[evaluation][self.running] = value

    def stop(self, ended: NDArray[np.bool_]) -> None:
        """Stop traces, which end before the others of their pass.

        Args:
            ended: The traces, `[methods, orderings]`.
        """
        self.running &= ~ended

    def finish(self) -> None:
        """Store the traces of a pass that has ended, all or none."""
        finished = {self.keys[m][k]: self.trace(m, k) for m, k in np.argwhere(self._passed).tolist()}
        imported = sorted(user_modules().keys() - self._loaded) if self._own else []
        if imported:
            # Edits of these modules would not change the keys.
            self.imported, self._unstored = imported, self._unstored | self._own
        self.ledger.write({key: trace for key, trace in finished.items() if self._is_stored(key)})
        self.ledger.release(finished)
        self._unfinished[self._passed] = False
        self.running = np.zeros_like(self.running)

    def discard(self) -> None:
        """Discard the traces of a pass that was cut off."""
        self.correct[:, self._passed] = NOT_EVALUATED
        self.diverged[self._passed] = NOT_EVALUATED

    def trace(self, method: int, ordering: int) -> Trace:
        """Return the trace of a method in an ordering, by their indices."""
        correct = self.correct[self.correct[:, method, ordering] != NOT_EVALUATED, method, ordering]
        diverged, drew = int(self.diverged[method, ordering]), bool(self.drew[method, ordering])
        return Trace(correct, None if diverged == NOT_EVALUATED else diverged, drew)

    def _is_stored(self, key: TraceKey) -> bool:
        return key.method not in self._unstored
