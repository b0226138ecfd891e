"""Measure what the ledger has not of a comparison, and write its results."""

from __future__ import annotations

import time

import yaml
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import Timer

from headstart.callbacks.interruption import signals_of
from headstart.callbacks.results import Results
from headstart.callbacks.sample_efficiency import CUT_OFF, SampleEfficiency
from headstart.callbacks.traces import Traces
from headstart.datamodules.sample_stream import SampleStream
from headstart.modules.comparison import Comparison
from headstart.output.errors import Terminated, UserError
from headstart.output.printable import say
from headstart.store.ledger import LedgerError

SECONDS_BETWEEN_LOOKS = 1.0


def measure(
    trainer: Trainer, comparison: Comparison, stream: SampleStream, criterion: SampleEfficiency, results: Results
) -> None:
    """Run a comparison as far as its traces are missing, and write its files however that ends.

    Args:
        trainer: The trainer, with the criterion among its callbacks.
        comparison: The methods.
        stream: What they are fed.
        criterion: The criterion.
        results: The results, which have claimed their folder.

    Raises:
        UserError: The ledger cannot be used.
        KeyboardInterrupt: The run was interrupted.
        Terminated: It was terminated.
    """
    # What Lightning does in `fit`; here it must be known what is fed before it is known whether anything is.
    stream.trainer = trainer
    try:
        stream.prepare_data()
        stream.setup("fit")
        traces = results.begin(stream, comparison)
        if results.is_known:
            return
        for logger in trainer.loggers:
            logger.log_hyperparams(yaml.safe_load(results.config))
        try:
            _measure_missing(trainer, comparison, stream, criterion, traces)
        except (KeyboardInterrupt, Terminated) as stop:
            # Also while it waits for another process.
            criterion.cut_off_because = CUT_OFF[type(stop)]
            raise
        except (LedgerError, UserError) as error:
            criterion.cut_off_because, criterion.is_mistaken = criterion.cut_off_because or f"error: {error}", True
            raise
        finally:
            results.finish(trainer)
    except LedgerError as error:
        raise UserError(f"results.ledger: {error}; choose another folder") from error
    finally:
        results.close()


def _measure_missing(
    trainer: Trainer, comparison: Comparison, stream: SampleStream, criterion: SampleEfficiency, traces: Traces
) -> None:
    """Measure first what no other process measures, as much at once as fits, then what others left undone."""
    waiting = False
    while traces.missing.any() and not criterion.cut_off_because:
        side_by_side = comparison.orderings_at_once(stream.start(), int(traces.missing.any(1).sum()))
        chosen, other = traces.claim()
        if chosen.any():
            passed = criterion.checkpoints.begin(chosen, side_by_side)
            traces.give_up(chosen & ~passed.measured)
            traces.begin(passed.measured, passed.known)
            seen = 0 if passed.known is None else traces.grid.samples_seen[len(passed.known) - 1]
            comparison.choose(passed.fed, int(seen), passed.states)
            _fit(trainer, comparison, stream)
        elif traces.missing.any():
            if not waiting:
                say(f"waiting for process {other}, which measures traces of this comparison")
            waiting = True
            time.sleep(SECONDS_BETWEEN_LOOKS)


def _fit(trainer: Trainer, comparison: Comparison, stream: SampleStream) -> None:
    # A trainer that has fitted once takes itself to be done.
    trainer.fit_loop.epoch_progress.reset()
    trainer.should_stop = False
    for callback in trainer.callbacks:  # type: ignore[attr-defined]
        # Its time is that of all passes together.
        if isinstance(callback, Timer):
            callback.load_state_dict(callback.state_dict())
    with signals_of(trainer):
        trainer.fit(comparison, datamodule=stream)
