"""Stored traces of a comparison that are measured again on request."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from lightning.pytorch import Trainer
from numpy.typing import NDArray

from headstart.callbacks.comparison_run import ComparisonRun
from headstart.callbacks.spot_check import find_difference, measure_again
from headstart.datamodules.sample_stream import SampleStream
from headstart.modules.comparison import Comparison
from headstart.store.ledger_file import TraceKey

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

    Methods that have drawn random numbers for several orderings at once are left out, as by the spot check.

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
            traces = stored.ledger.read(keys, of_class=True).items()
            of_class = {key: trace.of_class[1:] for key, trace in traces if trace.of_class is not None}
            comparison.counts_classes = bool(of_class)

            again = measure_again(trainer, comparison, stream, run, part)
            for method, ordering in np.argwhere(part).tolist():
                key = stored.keys[method][ordering]
                if ((stored.correct[:, method, ordering] >= 0) & (again.correct[:, method, ordering] >= 0)).any():
                    verified.orderings.setdefault(run.methods[method], []).append(key.ordering)
                difference = find_difference(run, again, method, ordering, of_class.get(key))
                if difference is not None:
                    rounding = ", which rounding on another processor can explain" * difference.is_rounding
                    verified.differences.append(difference.text + rounding)
    return verified


def _passes(run: ComparisonRun, choose: Choose, most: int) -> Iterator[NDArray[np.bool_]]:
    """Choose traces, and return those of so many orderings at a time, `[methods, orderings]`."""
    stored = run.traces
    measured = (stored.lengths > 0) & ~stored.drawn[:, None]
    chosen = set(choose([stored.keys[method][ordering] for method, ordering in np.argwhere(measured).tolist()]))
    wanted = measured & np.array([[key in chosen for key in keys] for keys in stored.keys])
    orderings = np.flatnonzero(wanted.any(0))
    for first in range(0, len(orderings), most):
        part = np.zeros_like(wanted)
        part[:, orderings[first : first + most]] = wanted[:, orderings[first : first + most]]
        yield part
