"""Measure the traces of a comparison that the ledger lacks."""

from contextlib import nullcontext
from typing import Any

import numpy as np
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import Timer
from numpy.typing import NDArray

import headstart
from headstart.callbacks.comparison_results import write_results
from headstart.callbacks.comparison_run import ComparisonRun
from headstart.callbacks.dashboard import DashboardLogger
from headstart.callbacks.own_module_training import train_module
from headstart.callbacks.run_ledger import claim_missing, record_run
from headstart.callbacks.sample_efficiency import CUT_OFF
from headstart.callbacks.training import continue_timers, raising_signals
from headstart.datamodules.sample_stream import SampleStream
from headstart.modules.comparison import Comparison
from headstart.output.errors import Terminated, UserError
from headstart.output.progress import Progress
from headstart.output.shipped_files import load_yaml
from headstart.output.version import git_revision
from headstart.store.ledger_file import COMPARISON, LedgerError


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
        described = {**load_yaml(run.folder.config), "run": _describe(run)}
        # Loggers that have this run already log nothing again.
        trainer.loggers = [
            each
            for each in trainer.loggers
            if not (each.is_published(described) if isinstance(each, DashboardLogger) else run.is_repeated)
        ]
        if run.traces.missing.any():
            keys = [key for keys in run.traces.keys for key in keys]
            record_run(run.traces.ledger, COMPARISON, run.folder.config, keys)
        for logger in trainer.loggers:
            logger.log_hyperparams(described)
        try:
            _measure_missing(trainer, comparison, stream, run)
        except (KeyboardInterrupt, Terminated) as stop:
            # Lightning does not see a signal that comes while this waits for another process.
            criterion.cut_off_because = CUT_OFF[type(stop)]
            raise
        except (LedgerError, UserError) as error:
            criterion.cut_off_because = criterion.cut_off_because or f"error: {error}"
            criterion.ended_by_user_error = True
            raise
        finally:
            write_results(run, trainer)


def _measure_missing(trainer: Trainer, comparison: Comparison, stream: SampleStream, run: ComparisonRun) -> None:
    """Measure as many orderings at once as memory allows: first those that no other process measures."""
    traces, criterion = run.traces, run.criterion
    for claimed in claim_missing(lambda: bool(traces.missing.any()) and not criterion.cut_off_because, traces.claim):
        together = int(traces.missing[~comparison.is_own].any(1).sum())
        fitting = comparison.orderings_at_once(stream.start(), max(1, together))
        most = min(fitting, stream.orderings_at_once or fitting) if together else 1
        in_pass = claimed.copy()
        in_pass[:, np.flatnonzero(claimed.any(0))[most:]] = False
        traces.release(claimed & ~in_pass)

        measure_pass(trainer, comparison, stream, run, in_pass)


def measure_pass(
    trainer: Trainer, comparison: Comparison, stream: SampleStream, run: ComparisonRun, chosen: NDArray[np.bool_]
) -> None:
    """Measure traces: of the methods side by side, then of each LightningModule in each ordering.

    Args:
        trainer: The trainer, with the criterion among its callbacks.
        comparison: The methods.
        stream: The data, set up.
        run: The run, whose criterion follows the traces.
        chosen: The traces, `[methods, orderings]`.
    """
    criterion, is_own = run.criterion, comparison.is_own[:, None]
    if (together := chosen & ~is_own).any():
        criterion.traces.begin(together)
        comparison.chosen = together
        fit_pass(trainer, comparison, stream)

    alone = np.argwhere((chosen & is_own).T).tolist()
    is_shown = trainer.progress_bar_callback is not None and alone
    with Progress("training", len(alone), "LightningModules") if is_shown else nullcontext() as progress:
        for ordering, method in alone:
            if criterion.cut_off_because:
                return
            train_module(trainer, comparison, stream, run, method, ordering)
            if progress is not None:
                progress.advance()


def fit_pass(trainer: Trainer, comparison: Comparison, stream: SampleStream) -> None:
    """Feed a comparison in one of several passes.

    Args:
        trainer: The trainer.
        comparison: The methods.
        stream: The data.

    Raises:
        KeyboardInterrupt: It was interrupted.
        Terminated: It was terminated.
    """
    # A trainer that has fitted once would do nothing.
    trainer.fit_loop.epoch_progress.reset()
    trainer.should_stop = False
    continue_timers([each for each in trainer.callbacks if isinstance(each, Timer)])  # type: ignore[attr-defined]
    with raising_signals(trainer):
        trainer.fit(comparison, datamodule=stream)


def _describe(run: ComparisonRun) -> dict[str, Any]:
    """Return what a reader of the loggers' configuration should know of a run, besides its options."""
    facts = {**run.stream.describe(), **run.keys[0].describe()["stream"]}
    names = ("dataset", "backbone", "weights", "weights_sha256", "train_size", "validation_size", "device", "threads")
    return {
        **{name: facts.get(name) for name in names},
        "precision": facts.get("feature_precision", facts.get("trainer_precision")),
        "accuracy_at": [int(at) for at in run.accuracy_at],
        "headstart": headstart.__version__,
        "git": git_revision(),
        "key": run.identity,
    }
