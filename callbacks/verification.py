"""Stored traces of a comparison that are measured again on request."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from lightning.pytorch import Callback, LightningModule, Trainer
from numpy.typing import NDArray

from headstart.callbacks.comparison_run import ComparisonRun
from headstart.callbacks.measurement import measure_pass
from headstart.callbacks.traces import Traces, first_difference
from headstart.datamodules.sample_stream import SampleStream
from headstart.modules.comparison import Comparison
from headstart.output.printable import printable
from headstart.store.ledger_file import TraceKey
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
        trainer: The trainer, with the criterion among its callbacks.
        comparison: The methods.
        stream: The data.
        run: The run, which is prepared.
        choose: Chooses the traces.
    """
    stream.trainer = trainer
    stream.prepare_data()
    stream.setup("fit")

    verified = Verified()
    with run.opened(stream, comparison):
        stored = run.traces
        for part in _passes(run, choose, comparison.orderings_at_once(stream.start(), len(run.methods))):
            keys = {stored.keys[method][ordering] for method, ordering in np.argwhere(part).tolist()}
            traces = stored.ledger.read(keys).items()
            of_class = {key: trace.of_class for key, trace in traces if trace.of_class is not None}
            comparison.counts_classes = bool(of_class)

            again = _measure_again(trainer, comparison, stream, run, part)
            for method, ordering in np.argwhere(part).tolist():
                key = stored.keys[method][ordering]
                if ((stored.correct[:, method, ordering] >= 0) & (again.correct[:, method, ordering] >= 0)).any():
                    verified.orderings.setdefault(run.methods[method], []).append(key.ordering)
                then = replace(stored.trace(method, ordering), of_class=of_class.get(key))
                if difference := first_difference(then, again.trace(method, ordering)):
                    verified.differences.append(_describe(run, method, ordering, *difference))
    return verified


def _passes(run: ComparisonRun, choose: Choose, most: int) -> Iterator[NDArray[np.bool_]]:
    """Choose traces, and return those of so many orderings at a time, `[methods, orderings]`."""
    stored = run.traces
    measured = (stored.lengths > 0) & ~stored.drew
    chosen = set(choose([stored.keys[method][ordering] for method, ordering in np.argwhere(measured).tolist()]))
    wanted = measured & np.array([[key in chosen for key in keys] for keys in stored.keys])
    orderings = np.flatnonzero(wanted.any(0))
    for first in range(0, len(orderings), most):
        part = np.zeros_like(wanted)
        part[:, orderings[first : first + most]] = wanted[:, orderings[first : first + most]]
        yield part


class _End(Callback):
    """Ends a pass when nothing is left to compare.

    Args:
        again: The traces as they are measured again.
        length: Evaluations of the longest stored one.
    """

    def __init__(self, again: Traces, length: int) -> None:
        self.again, self.length = again, length

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """End the pass if it is time."""
        if self.again.lengths.max() >= self.length:
            trainer.should_stop = True


def _measure_again(
    trainer: Trainer, comparison: Comparison, stream: SampleStream, run: ComparisonRun, chosen: NDArray[np.bool_]
) -> Traces:
    """Measure stored traces again in one pass, which changes neither the run's traces nor its ledger.

    Args:
        trainer: The trainer, with the criterion among its callbacks.
        comparison: The methods.
        stream: The data, set up.
        run: The run, whose ledger is open.
        chosen: The traces, `[methods, orderings]`.

    Returns:
        The traces as they are measured again, with counts of classes if the comparison counts them.
    """
    criterion, stored = run.criterion, run.traces
    methods, orderings = [keys[0].method for keys in stored.keys], [key.ordering for key in stored.keys[0]]
    sizes = run.class_sizes if comparison.counts_classes else None
    again = Traces(LedgerReader(None), stored.keys[0][0].stream, methods, orderings, stored.grid, class_sizes=sizes)
    callbacks: list[Any] = trainer.callbacks  # type: ignore[attr-defined]
    ending, loggers = _End(again, int(stored.lengths[chosen].max())), trainer.loggers

    criterion.follow(again, run.methods, len(stream.validation_labels))
    callbacks.append(ending)
    trainer.loggers = []
    try:
        measure_pass(trainer, comparison, stream, run, chosen)
    finally:
        trainer.loggers = loggers
        callbacks.remove(ending)
        criterion.follow(stored, run.methods, len(stream.validation_labels))
        criterion.cut_off_because, criterion.ended_by_user_error = "", False
    return again


def _describe(run: ComparisonRun, method: int, ordering: int, evaluation: int, column: int, then: int, now: int) -> str:
    """Describe a difference: of the trace's counts (column 0), or of those of a class (1 and following)."""
    samples, number = run.traces.grid.samples_seen[evaluation], run.traces.keys[method][ordering].ordering
    names = run.keys[0].stream.get("classes") or range(len(run.class_sizes))
    of_class = f" of the class {printable(str(names[column - 1]))}" if column else ""
    return (
        f"the trace of {run.methods[method]} in ordering {number} differs first at evaluation {evaluation + 1} "
        f"({samples} samples): {then} correct predictions{of_class} are stored, measured again there are {now}"
    )
