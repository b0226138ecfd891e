"""Measure the traces of a comparison that the ledger lacks, and write its results."""

from __future__ import annotations

import yaml
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import Timer

from headstart.callbacks.comparison_results import write_results
from headstart.callbacks.comparison_run import ComparisonRun
from headstart.callbacks.run_ledger import claim_missing
from headstart.callbacks.sample_efficiency import CUT_OFF
from headstart.callbacks.training import signals_of
from headstart.datamodules.sample_stream import SampleStream
from headstart.modules.comparison import Comparison
from headstart.output.errors import Terminated, UserError
from headstart.store.ledger import LedgerError


def measure(trainer: Trainer, comparison: Comparison, stream: SampleStream, run: ComparisonRun) -> None:
    """Measure the missing traces of a comparison, and write its files however that ends.

    Args:
        trainer: The trainer, with the criterion among its callbacks.
        comparison: The methods.
        stream: The data.
        run: The run, which is prepared.

    Raises:
        UserError: The ledger cannot be used.
        KeyboardInterrupt: The run was interrupted.
        Terminated: It was terminated.
    """
    # Lightning sets up the data in `fit`; here the data decides which traces are missing, if any.
    stream.trainer = trainer
    stream.prepare_data()
    stream.setup("fit")
    criterion = run.criterion
    with run.opened(stream, comparison):
        if run.is_known:
            return
        for logger in trainer.loggers:
            logger.log_hyperparams(yaml.safe_load(run.folder.config))
        try:
            _measure_missing(trainer, comparison, stream, run)
        except (KeyboardInterrupt, Terminated) as stop:
            # Lightning does not see a signal that comes while this waits for another process.
            criterion.cut_off_because = CUT_OFF[type(stop)]
            raise
        except (LedgerError, UserError) as error:
            criterion.cut_off_because, criterion.is_mistaken = criterion.cut_off_because or f"error: {error}", True
            raise
        finally:
            write_results(run, trainer)


def _measure_missing(trainer: Trainer, comparison: Comparison, stream: SampleStream, run: ComparisonRun) -> None:
    """Measure as many traces at once as memory allows: first those that no other process measures."""
    traces, criterion = run.traces, run.criterion
    for claimed in claim_missing(lambda: bool(traces.missing.any()) and not criterion.cut_off_because, traces.claim):
        side_by_side = comparison.orderings_at_once(stream.start(), int(traces.missing.any(1).sum()))
        start = run.checkpoints.begin(claimed, side_by_side)
        traces.release(claimed & ~start.measured)
        traces.begin(start.measured, start.known)
        seen = 0 if start.known is None else traces.grid.samples_seen[len(start.known) - 1]
        comparison.choose(start.fed, int(seen), start.states)
        _fit(trainer, comparison, stream)


def _fit(trainer: Trainer, comparison: Comparison, stream: SampleStream) -> None:
    # A trainer that has fitted once would do nothing.
    trainer.fit_loop.epoch_progress.reset()
    trainer.should_stop = False
    for callback in trainer.callbacks:  # type: ignore[attr-defined]
        # Its time is that of all passes together.
        if isinstance(callback, Timer):
            callback.load_state_dict(callback.state_dict())
    with signals_of(trainer):
        trainer.fit(comparison, datamodule=stream)
