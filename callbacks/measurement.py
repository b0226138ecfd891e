"""Measure those traces of a comparison that are missing in the ledger."""

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
from headstart.callbacks.run_ledger import claim_missing
from headstart.callbacks.sample_efficiency import CUT_OFF
from headstart.callbacks.training import continue_timers, raising_signals
from headstart.datamodules.sample_stream import SampleStream
from headstart.modules.comparison import Comparison
from headstart.output.errors import Terminated, UserError
from headstart.output.progress import Progress
from headstart.output.shipped_files import load_yaml
from headstart.output.version import git_revision
from headstart.store.ledger_file import LedgerError


def measure(trainer: Trainer, comparison: Comparison, stream: SampleStream, run: ComparisonRun) -> None:
    """Measure the missing traces of a comparison, and write its files even after an error.

    Args:
        trainer: The trainer, with the criterion among its callbacks.
        comparison: The methods.
        stream: The data.
        run: The prepared run.

    Raises:
        UserError: The ledger cannot be used.
        KeyboardInterrupt: The run was interrupted.
        Terminated: It was terminated.
    """
    # Lightning would set up the data in `fit`, but the data determines which traces are missing.
    stream.trainer = trainer
    stream.prepare_data()
    stream.setup("fit")
    criterion = run.criterion
    with run.opened(stream, comparison):
        hyperparameters = {**load_yaml(run.folder.config), "run": _describe(run)}
        # Loggers that already have this run are removed, so that they do not log it twice.
        trainer.loggers = [
            logger
            for logger in trainer.loggers
            if not (logger.is_published(hyperparameters) if isinstance(logger, DashboardLogger) else run.is_repeated)
        ]
        for logger in trainer.loggers:
            logger.log_hyperparams(hyperparameters)
        try:
            _measure_missing(trainer, comparison, stream, run)
        except (KeyboardInterrupt, Terminated) as stop:
            # Lightning misses a signal that arrives while this process waits for another one.
            criterion.cut_off_because = CUT_OFF[type(stop)]
            raise
        except (LedgerError, UserError) as error:
            criterion.cut_off_because = criterion.cut_off_because or f"error: {error}"
            criterion.ended_by_user_error = True
            raise
        finally:
            write_results(run, trainer)


def _measure_missing(trainer: Trainer, comparison: Comparison, stream: SampleStream, run: ComparisonRun) -> None:
    """Measure missing traces in passes of as many orderings as fit into memory.

    Traces that no other process measures come first.
    """
    traces, criterion = run.traces, run.criterion
    for claimed in claim_missing(lambda: bool(traces.missing.any()) and not criterion.cut_off_because, traces.claim):
        methods = int(traces.missing[~comparison.is_lightning_module].any(1).sum())
        fitting = comparison.orderings_at_once(stream.start(), max(1, methods))
        limit = min(fitting, stream.orderings_at_once or fitting) if methods else 1
        in_pass = claimed.copy()
        in_pass[:, np.flatnonzero(claimed.any(0))[limit:]] = False
        traces.release(claimed & ~in_pass)

        measure_pass(trainer, comparison, stream, run, in_pass)


def measure_pass(
    trainer: Trainer, comparison: Comparison, stream: SampleStream, run: ComparisonRun, selected: NDArray[np.bool_]
) -> None:
    """Measure the traces of all methods side by side, then those of the LightningModules one at a time.

    Args:
        trainer: The trainer, with the criterion among its callbacks.
        comparison: The methods.
        stream: The data, set up.
        run: The run, whose criterion follows the traces.
        selected: Whether to measure each trace, `[methods, orderings]`.
    """
    criterion, trained_alone = run.criterion, comparison.is_lightning_module[:, None]
    if (together := selected & ~trained_alone).any():
        criterion.traces.begin(together)
        comparison.selected = together
        fit_pass(trainer, comparison, stream)

    alone = np.argwhere((selected & trained_alone).T).tolist()
    is_shown = trainer.progress_bar_callback is not None and alone
    with Progress("training", len(alone), "LightningModules") if is_shown else nullcontext() as progress:
        for ordering, method in alone:
            if criterion.cut_off_because:
                return
            train_module(trainer, comparison, stream, run, method, ordering)
            if progress is not None:
                progress.advance()


def fit_pass(trainer: Trainer, comparison: Comparison, stream: SampleStream) -> None:
    """Fit a comparison in one of several passes.

    Args:
        trainer: The trainer.
        comparison: The methods.
        stream: The data.

    Raises:
        KeyboardInterrupt: The pass was interrupted.
        Terminated: The pass was terminated.
    """
    # Without a reset, a trainer that has completed its epochs would not fit again.
    trainer.fit_loop.epoch_progress.reset()
    trainer.should_stop = False
    continue_timers([callback for callback in trainer.callbacks if isinstance(callback, Timer)])  # type: ignore[attr-defined]
    with raising_signals(trainer):
        trainer.fit(comparison, datamodule=stream)


def _describe(run: ComparisonRun) -> dict[str, Any]:
    """Return the facts about a run that loggers show besides its options."""
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
