"""Stored traces of a comparison that are measured again on request."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from lightning.pytorch import Trainer
from numpy.typing import NDArray

from headstart.callbacks.comparison_run import ComparisonRun
from headstart.callbacks.measurement import measure_pass
from headstart.callbacks.traces import Traces
from headstart.datamodules.sample_stream import SampleStream
from headstart.modules.comparison import Comparison
from headstart.output.printable import printable
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
    """Measure stored traces of a comparison again, as far as they go, and compare them count by count, class by class.

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
            traces = stored.ledger.read({stored.keys[method][ordering] for method, ordering in indices})
            again = _empty(run, has_classes=any(trace.of_class is not None for trace in traces.values()))
            comparison.counts_classes = again.of_class is not None
            run.criterion.follow(again, run.methods, len(stream.validation_labels))
            measure_pass(trainer, comparison, stream, run, part)

            for method, ordering in indices:
                key = stored.keys[method][ordering]
                if ((stored.correct[:, method, ordering] >= 0) & (again.correct[:, method, ordering] >= 0)).any():
                    verified.orderings.setdefault(run.methods[method], []).append(key.ordering)
                # Lazy evaluation takes a trace with every evaluation from another key.
                of_class = traces[key].of_class if key in traces else None
                then = replace(stored.trace(method, ordering), of_class=of_class)
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


def _empty(run: ComparisonRun, has_classes: bool) -> Traces:
    """Return the run's traces without a count, and with a ledger in which nothing is stored."""
    stored = run.traces
    methods, orderings = [keys[0].method for keys in stored.keys], [key.ordering for key in stored.keys[0]]
    sizes = run.class_sizes if has_classes else None
    return Traces(LedgerReader(None), stored.keys[0][0].stream, methods, orderings, stored.grid, class_sizes=sizes)


def first_difference(then: Trace, now: Trace) -> tuple[int, int, int, int] | None:
    """Find where two measurements of a trace differ first, as far as both were evaluated.

    Returns:
        The evaluation from 0, what differs (0 for all correct predictions, from 1 on those of the classes where both
        counted them), and both counts; None where they are the same.
    """
    end = min(len(then.correct), len(now.correct))
    old, new = then.correct[:end, None].astype(np.int64), now.correct[:end, None].astype(np.int64)
    if then.of_class is not None and now.of_class is not None:
        old = np.hstack([old, then.of_class[1 : 1 + end].astype(np.int64)])
        new = np.hstack([new, now.of_class[1 : 1 + end].astype(np.int64)])

    # Lazy evaluation may have skipped different evaluations.
    differing = np.argwhere((old != new) & (old[:, :1] >= 0) & (new[:, :1] >= 0))
    if not len(differing):
        return None
    evaluation, column = differing[0].tolist()
    return evaluation, column, int(old[evaluation, column]), int(new[evaluation, column])


def _describe(run: ComparisonRun, method: int, ordering: int, evaluation: int, column: int, then: int, now: int) -> str:
    """Describe a difference: of the trace's counts (column 0), or of those of a class (1 and following)."""
    samples, number = run.traces.grid.samples_seen[evaluation], run.traces.keys[method][ordering].ordering
    names = run.keys[0].stream.get("classes") or range(len(run.class_sizes))
    of_class = f" of the class {printable(str(names[column - 1]))}" if column else ""
    return (
        f"the trace of {run.methods[method]} in ordering {number} differs first at evaluation {evaluation + 1} "
        f"({samples} samples): {then} correct predictions{of_class} are stored, measured again there are {now}"
    )
