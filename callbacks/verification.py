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
            before = stored.ledger.read(keys)
            comparison.counts_classes = any(trace.of_class is not None for trace in before.values())

            again = _measure_again(trainer, comparison, stream, run, part)
            for method, ordering in np.argwhere(part).tolist():
                key = stored.keys[method][ordering]
                verified.orderings.setdefault(run.methods[method], []).append(key.ordering)
                differing = _differing(before[key], again.trace(method, ordering))
                if len(differing):
                    samples = stored.grid.samples_seen[differing[0]]
                    verified.differences.append(
                        f"the trace of {run.methods[method]} in ordering {key.ordering} differs first at evaluation "
                        f"{differing[0] + 1} ({samples} samples)"
                    )
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

    criterion.follow(again, run.methods, len(stream.validation_labels))
    loggers, trainer.loggers = trainer.loggers, []
    try:
        measure_pass(trainer, comparison, stream, run, chosen)
    finally:
        trainer.loggers = loggers
        criterion.follow(stored, run.methods, len(stream.validation_labels))
        criterion.cut_off_because, criterion.is_mistaken = "", False
    return again


def _differing(then: Trace, now: Trace) -> NDArray[np.int64]:
    """Return the evaluations whose counts, or those of a class, differ; as far as both traces have them."""
    end = min(len(then.correct), len(now.correct))
    one, other = then.correct[:end], now.correct[:end]
    # Lazy evaluation may have skipped different evaluations.
    differs = (one != other) & (one >= 0) & (other >= 0)
    if then.of_class is not None and now.of_class is not None:
        differs |= (then.of_class[1 : 1 + end] != now.of_class[1 : 1 + end]).any(1)
    return np.flatnonzero(differs)
