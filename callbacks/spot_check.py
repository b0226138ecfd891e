"""Stored traces that are measured again: the spot check of those that a comparison reuses."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from lightning.pytorch import Callback, LightningModule, Trainer
from numpy.typing import NDArray

from headstart.callbacks.comparison_run import ComparisonRun
from headstart.callbacks.traces import Traces
from headstart.callbacks.training import fit_pass
from headstart.datamodules.sample_stream import SampleStream
from headstart.modules.comparison import Comparison
from headstart.output.errors import UserError
from headstart.output.printable import printable
from headstart.store.unwritten_ledger import UnwrittenLedger

SECONDS = 1.0
# Sums are rounded differently beside other orderings and on other processors. Measured, that changes a count by 5 of
# 1,000 samples at most, and few counts of a trace; see docs/protocol.md, Determinism.
ROUNDED_SAMPLES, ROUNDED_COUNTS = 0.005, 0.1


class _End(Callback):
    """Ends a pass when nothing is left to compare, or when time is up and something was compared.

    Args:
        again: The traces as they are measured again.
        length: Evaluations of the longest stored one.
        end: When time is up, by `time.monotonic`.
    """

    def __init__(self, again: Traces, length: int, end: float) -> None:
        self.again, self.length, self.end = again, length, end

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """End the pass if it is time."""
        is_over = time.monotonic() > self.end and (self.again.correct >= 0).any()
        if is_over or self.again.lengths.max() >= self.length:
            trainer.should_stop = True


def spot_check(trainer: Trainer, comparison: Comparison, stream: SampleStream, run: ComparisonRun) -> None:
    """Measure one stored trace of every method that a comparison reuses again, and compare it.

    It takes about a second. Of long traces only the beginning is measured, one evaluation at least. Methods that have
    drawn random numbers for several orderings at once are left out: alone, an ordering draws others.

    Args:
        trainer: The trainer, with the criterion among its callbacks.
        comparison: The methods.
        stream: The data, set up.
        run: The run, whose ledger is open; the traces that were compared are added to `run.checked`.

    Raises:
        UserError: A trace comes out differently.
    """
    stored = run.traces
    reused = (stored.lengths > 0) & ~stored.missing & ~stored.drawn[:, None]
    # The same command chooses the same orderings, and other comparisons choose others.
    generator = np.random.default_rng(int(run.identity[:16], 16))
    end = time.monotonic() + SECONDS
    for chosen in _one_of_each(reused, generator):
        again = measure_again(trainer, comparison, stream, run, chosen, end)
        for method, ordering in np.argwhere(chosen).tolist():
            of_class = None if stored.of_class is None else stored.of_class[:, method, ordering]
            difference = find_difference(run, again, method, ordering, of_class)
            if difference is not None and not difference.is_rounding:
                raise UserError(
                    f"results.ledger: in {stored.ledger.location!r} {difference.text}. "
                    "Something changed that no digest covers: give --results.recompute=true, or another folder"
                )
            then, now = stored.correct[:, method, ordering], again.correct[:, method, ordering]
            compared = int(((then >= 0) & (now >= 0)).sum())
            number = stored.keys[method][ordering].ordering
            run.checked.append({"method": run.methods[method], "ordering": number, "evaluations": compared})


def _one_of_each(reused: NDArray[np.bool_], generator: np.random.Generator) -> Iterator[NDArray[np.bool_]]:
    """Choose one trace of every method, in as few orderings as possible, and return those of each ordering."""
    left = reused.copy()
    while left.any():
        counts = left.sum(0)
        ordering = generator.choice(np.flatnonzero(counts == counts.max()))
        chosen = np.zeros_like(left)
        chosen[:, ordering] = left[:, ordering]
        yield chosen
        left[chosen.any(1)] = False


def measure_again(
    trainer: Trainer,
    comparison: Comparison,
    stream: SampleStream,
    run: ComparisonRun,
    chosen: NDArray[np.bool_],
    end: float = np.inf,
) -> Traces:
    """Measure stored traces again in one pass, which changes neither the run's traces nor its ledger.

    Args:
        trainer: The trainer, with the criterion among its callbacks.
        comparison: The methods.
        stream: The data, set up.
        run: The run, whose ledger is open.
        chosen: The traces, `[methods, orderings]`.
        end: When to end after the next evaluation, by `time.monotonic`.

    Returns:
        The traces as they are measured again, with counts of classes if the comparison counts them.
    """
    criterion, stored = run.criterion, run.traces
    methods, orderings = [keys[0].method for keys in stored.keys], [key.ordering for key in stored.keys[0]]
    sizes = run.class_sizes if comparison.counts_classes else None
    again = Traces(UnwrittenLedger(), stored.keys[0][0].stream, methods, orderings, stored.grid, class_sizes=sizes)
    callbacks: list[Any] = trainer.callbacks  # type: ignore[attr-defined]
    ending, loggers = _End(again, int(stored.lengths[chosen].max()), end), trainer.loggers

    criterion.follow(again, None, run.methods, len(stream.validation_labels))
    callbacks.append(ending)
    trainer.loggers = []
    try:
        again.begin(chosen)
        comparison.choose(chosen)
        fit_pass(trainer, comparison, stream)
    finally:
        trainer.loggers = loggers
        callbacks.remove(ending)
        criterion.follow(stored, run.checkpoints, run.methods, len(stream.validation_labels))
        criterion.cut_off_because, criterion.is_mistaken = "", False
    return again


@dataclass(frozen=True)
class Difference:
    """Where a stored trace differs from what was measured again.

    Attributes:
        text: A description of the first evaluation that differs.
        is_rounding: Whether the traces agree but for rounding.
    """

    text: str
    is_rounding: bool


def find_difference(
    run: ComparisonRun,
    again: Traces,
    method: int,
    ordering: int,
    of_class: NDArray[np.unsignedinteger[Any]] | None = None,
) -> Difference | None:
    """Compare a stored trace with what was measured again, as far as both were evaluated.

    Args:
        run: The run.
        again: The traces as they are measured again.
        method: Index of the method.
        ordering: Index of the ordering.
        of_class: Stored correct predictions of each class, `[evaluations, classes]`; None where there are none.

    Returns:
        None where they are the same.
    """
    then, now = (traces.correct[:, method, ordering, None] for traces in (run.traces, again))
    if of_class is not None and again.of_class is not None:
        counts = again.of_class[:, method, ordering].astype(np.int64)
        # Beyond the end of the stored counts, there is no difference.
        stored = np.concatenate([of_class, counts[len(of_class) :]])[: len(counts)]
        then, now = np.hstack([then, stored]), np.hstack([now, counts])

    evaluations = np.flatnonzero((then[:, 0] >= 0) & (now[:, 0] >= 0))
    then, now = then[evaluations], now[evaluations]
    if np.array_equal(then, now):
        return None
    first, column = np.argwhere(then != now)[0].tolist()
    text = _describe(run, method, ordering, int(evaluations[first]), column, then[first, column], now[first, column])
    return Difference(text, _is_rounding(then, now, run))


def _describe(run: ComparisonRun, method: int, ordering: int, evaluation: int, column: int, then: int, now: int) -> str:
    """Describe a difference: of the trace's counts (column 0), or of those of a class (1 and following)."""
    samples, number = run.traces.grid.samples_seen[evaluation], run.traces.keys[method][ordering].ordering
    names = run.stream.protocol().get("classes") or range(len(run.class_sizes))
    of_class = f" of the class {printable(str(names[column - 1]))}" if column else ""
    return (
        f"the trace of {run.methods[method]} in ordering {number} differs first at evaluation {evaluation + 1} "
        f"({samples} samples): {then} correct predictions{of_class} are stored, measured again there are {now}"
    )


def _is_rounding(then: NDArray[np.int64], now: NDArray[np.int64], run: ComparisonRun) -> bool:
    """Whether counts `[evaluations, 1 or 1 + classes]` agree but for rounding."""
    weights = run.comparison.class_weights
    # A count moves by a whole sample at least.
    sample, samples = 1 if weights is None else int(weights.max()), int(run.class_sizes.sum())
    most = np.full(then.shape[1], max(1.0, ROUNDED_SAMPLES * samples))
    most[0] = max(sample, ROUNDED_SAMPLES * run.traces.grid.all_correct)
    # Predictions that move between classes leave the trace's counts as they are.
    differing = (then[:, 0] != now[:, 0]).sum()
    return bool((np.abs(then - now) <= most).all() and differing <= max(1, ROUNDED_COUNTS * len(then)))
