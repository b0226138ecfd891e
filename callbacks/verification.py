"""Stored traces of a comparison that are measured again on request."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from lightning.pytorch import Trainer
from numpy.typing import NDArray

from headstart.callbacks.comparison_run import ComparisonRun
from headstart.callbacks.measurement import measure_pass
from headstart.callbacks.traces import Traces
from headstart.datamodules.sample_stream import SampleStream
from headstart.modules.comparison import Comparison
from headstart.store.ledger_file import Trace, TraceKey
from headstart.store.ledger_reader import LedgerReader

# Returns those of the stored traces that are to be measured again.
Choose = Callable[[Sequence[TraceKey]], Collection[TraceKey]]


@dataclass
class Verified:
    """The traces of a run that were measured again.

    Attributes:
        orderings: Numbers of the orderings by the name of their method.
        differences: A description of each trace that came out differently.
    """

    orderings: dict[str, list[int]] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)

    @property
    def checked(self) -> int:
        """Number of the traces."""
        return sum(map(len, self.orderings.values()))


def verify(
    trainer: Trainer, comparison: Comparison, stream: SampleStream, run: ComparisonRun, choose: Choose
) -> Verified:
    """Measure stored traces of a comparison again, as far as they go, and compare them count by count.

    Methods that have drawn random numbers for several orderings at once are left out: alone, an ordering draws others.

    Args:
        trainer: The trainer, without loggers, with the criterion among its callbacks.
        comparison: The methods.
        stream: The data.
        run: The run, which is prepared, with a ledger that is only read.
        choose: Chooses the traces.
    """
    stream.trainer = trainer
    stream.prepare_data()
    stream.setup("fit")

    verified = Verified()
    with run.opened(stream, comparison) as stored:
        for part in _passes(run, choose, comparison.orderings_at_once(stream.start(), len(run.methods))):
            indices = np.argwhere(part).tolist()
            again = _empty(run)
            run.criterion.follow(again, run.methods, len(stream.validation_labels))
            measure_pass(trainer, comparison, stream, run, part)

            for method, ordering in indices:
                number = stored.keys[method][ordering].ordering
                if ((stored.correct[:, method, ordering] >= 0) & (again.correct[:, method, ordering] >= 0)).any():
                    verified.orderings.setdefault(run.methods[method], []).append(number)
                then = stored.trace(method, ordering)
                if difference := first_difference(then, again.trace(method, ordering)):
                    verified.differences.append(_describe(run, method, ordering, *difference))
    return verified


def _passes(run: ComparisonRun, choose: Choose, most: int) -> Iterator[NDArray[np.bool_]]:
    """Choose traces, and return those of so many orderings at a time, `[methods, orderings]`."""
    stored = run.traces
    measured = (stored.lengths > 0) & ~stored.drew
    keys = set(choose([stored.keys[method][ordering] for method, ordering in np.argwhere(measured).tolist()]))
    wanted = measured & np.array([[key in keys for key in row] for row in stored.keys])
    orderings = np.flatnonzero(wanted.any(0))
    for first in range(0, len(orderings), most):
        part = np.zeros_like(wanted)
        part[:, orderings[first : first + most]] = wanted[:, orderings[first : first + most]]
        yield part


def _empty(run: ComparisonRun) -> Traces:
    """Return the run's traces without a count, and with a ledger in which nothing is stored."""
    stored = run.traces
    methods, orderings = [keys[0].method for keys in stored.keys], [key.ordering for key in stored.keys[0]]
    return Traces(LedgerReader(None), stored.keys[0][0].stream, methods, orderings, stored.grid)


def first_difference(then: Trace, now: Trace) -> tuple[int, int, int] | None:
    """Find where two measurements of a trace differ first, as far as both were evaluated.

    Returns:
        The evaluation from 0, and both counts; None where they are the same.
    """
    end = min(len(then.correct), len(now.correct))
    old, new = then.correct[:end], now.correct[:end]
    # Lazy evaluation may have skipped different evaluations.
    differing = np.flatnonzero((old != new) & (old >= 0) & (new >= 0))
    if not len(differing):
        return None
    evaluation = int(differing[0])
    return evaluation, int(old[evaluation]), int(new[evaluation])


def _describe(run: ComparisonRun, method: int, ordering: int, evaluation: int, then: int, now: int) -> str:
    """Describe a difference."""
    samples, number = run.traces.grid.samples_seen[evaluation], run.traces.keys[method][ordering].ordering
    return (
        f"the trace of {run.methods[method]} in ordering {number} differs first at evaluation {evaluation + 1} "
        f"({samples} samples): {then} correct predictions are stored, measured again there are {now}"
    )
