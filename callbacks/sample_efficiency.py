"""The criterion of sample efficiency, with early stopping."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from jsonargparse.typing import ClosedUnitInterval, PositiveInt
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities.exceptions import SIGTERMException
from numpy.typing import NDArray

from headstart.callbacks.checkpoints import Checkpoints
from headstart.callbacks.traces import Grid, Traces
from headstart.metrics.sample_efficiency.curves import CONSECUTIVE, SKIPPED, THRESHOLD, Measure, required_correct
from headstart.metrics.sample_efficiency.lazy_evaluation import next_evaluation, window_start
from headstart.modules.comparison import Comparison
from headstart.output.errors import Terminated, UserError

BAND = (10, 90)
CUT_OFF: dict[type[BaseException], str] = {
    KeyboardInterrupt: "interrupted",
    Terminated: "terminated",
    SIGTERMException: "terminated",
}


class SampleEfficiency(Callback):
    """Keeps the traces that are measured, and stops once all of them have met the criterion.

    Args:
        threshold: Validation accuracy that counts as reached; exactly this accuracy does.
        consecutive: Evaluations in a row at which it must be reached.
        evaluate_every: Batches between two evaluations.
        measure: `accuracy`, or `balanced_accuracy`, the mean of the classes' own accuracies, for classes of unequal
            sizes: it cannot be high for predicting the largest class alone.
        evaluation: `every` evaluation is made, or `lazy`: only those that decide when the criterion is met, one
            ordering after the other, with the same samples to criterion. What the others would tell is then not known:
            learning curves, accuracies, other thresholds.
        stop_when_met: Neither train nor evaluate a method any more that has met the criterion in all orderings that run
            side by side; lazy evaluation does so, too.
    """

    traces: Traces
    checkpoints: Checkpoints

    def __init__(
        self,
        threshold: ClosedUnitInterval = THRESHOLD,
        consecutive: PositiveInt = CONSECUTIVE,
        evaluate_every: PositiveInt = 1,
        measure: Measure = "accuracy",
        evaluation: Literal["every", "lazy"] = "every",
        stop_when_met: bool = False,
    ) -> None:
        self.threshold = threshold
        self.consecutive = consecutive
        self.evaluate_every = evaluate_every
        self.measure = measure
        self.is_lazy = evaluation == "lazy"
        self.stops = stop_when_met or self.is_lazy
        self.cut_off_because = ""
        # Whether that is a mistake of the user's, which the command ends by telling.
        self.is_mistaken = False
        # Number of the evaluation that is being made; None where it is none of the protocol.
        self._now: int | None = None

    def grid(self, max_samples: int, batch_size: int, all_correct: int) -> Grid:
        """Say where a whole stream is evaluated.

        Args:
            max_samples: Samples that an ordering feeds.
            batch_size: Samples in a batch; the last may be smaller.
            all_correct: The count of correct predictions where all are.
        """
        evaluations = math.ceil(max_samples / batch_size) // self.evaluate_every
        seen = np.arange(1, evaluations + 1) * self.evaluate_every * batch_size
        required = required_correct(self.threshold, all_correct)
        return Grid(np.minimum(seen, max_samples), all_correct, required, self.consecutive)

    def follow(self, traces: Traces, checkpoints: Checkpoints, methods: Sequence[str], validation_size: int) -> None:
        """Take the traces of a comparison, of which some may be there.

        Args:
            traces: The traces.
            checkpoints: From which some of them may go on.
            methods: Names of the methods.
            validation_size: Number of validation samples.
        """
        self.traces, self.checkpoints, self.methods = traces, checkpoints, methods
        self.validation_size = validation_size
        # Samples at which a trace has met the criterion, infinite until then.
        self._met_at = traces.met_at
        self._logged = 0

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start with the streaks of what is known."""
        traces = self.traces
        self._waiting = traces.running.copy()
        self._streaks = traces.streaks
        self._met_at[self._waiting] = traces.met_at[self._waiting]
        self._evaluated, self._next, self._now = False, int(traces.lengths[self._waiting].min()), None
        # A curve is over all orderings, those that passes before have measured, and those that come later.
        self._is_last = not (traces.missing & ~self._waiting).any()
        if self._is_last:
            self._log_stored(trainer, self._next)

    @property
    def met(self) -> NDArray[np.bool_]:
        """Which traces have met the criterion so far, `[methods, orderings]`."""
        met: NDArray[np.bool_] = np.isfinite(self._met_at)
        return met

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: object, batch_idx: int) -> None:
        """Write a checkpoint now and then, between an evaluation and the next batch."""
        assert isinstance(pl_module, Comparison)
        if self._evaluated:
            self.checkpoints.save_if_due(pl_module)
        self._evaluated = False

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Tell which evaluation this is; Lightning evaluates once more where it stops early, which is none."""
        assert isinstance(pl_module, Comparison)
        places = np.flatnonzero(self.traces.grid.samples_seen == pl_module.samples_seen)
        is_one = len(places) and places[0] >= self._next and not trainer.sanity_checking
        self._now = int(places[0]) if is_one else None
        if self._now is not None and self.is_lazy:
            self.traces.skip(self._now)

    @property
    def now(self) -> int | None:
        """Number of the evaluation that is being made; None where it is none of the protocol."""
        return self._now

    def wanted(self, method: int) -> int | None:
        """Give the number of the evaluation that is to be made next of a method; None where it has to learn more.

        Args:
            method: Its place among the methods.
        """
        assert self._now is not None
        wanted = next_evaluation(self._known(method), self.traces.grid.required, self.consecutive)
        return None if wanted is None or wanted > self._now else wanted

    def take(self, method: int, evaluation: int, correct: NDArray[np.int64], not_finite: NDArray[np.int64]) -> None:
        """Take the counts of an evaluation that was asked for.

        Args:
            method: Its place among the methods.
            evaluation: Its number.
            correct: Correct predictions, `[1]`.
            not_finite: Predictions that are not finite numbers, `[1]`.
        """
        (ordering,) = np.flatnonzero(self.traces.running[method])
        self.traces.take(evaluation, method, int(ordering), int(correct[0]), int(not_finite[0]))

    def needed(self, method: int) -> list[int]:
        """Give the evaluations up to now that may still be asked for of a method, in order.

        Args:
            method: Its place among the methods.
        """
        known = self._known(method)
        first = window_start(known, self.traces.grid.required, self.consecutive)
        return [first + int(place) for place in np.flatnonzero(known[first:] == SKIPPED)]

    def _known(self, method: int) -> NDArray[np.int64]:
        """Give the counts up to now of a method in the ordering that it is fed."""
        assert self._now is not None
        return self.traces.correct[: self._now + 1, method, self.traces.running[method]][:, 0]

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Take the counts of one evaluation, and stop what nothing waits for."""
        assert isinstance(pl_module, Comparison)
        if self._now is None:
            return
        now, grid = pl_module.snapshot(), self.traces.grid
        if now.samples_validated != self.validation_size:
            raise UserError(
                f"trainer.limit_val_batches: {now.samples_validated} of {self.validation_size} validation photos "
                "were evaluated; an evaluation takes all"
            )
        self._evaluated, self._next = True, self._now + 1
        running = self.traces.running
        if self.is_lazy:
            for method in np.flatnonzero(running.any(1)).tolist():
                if next_evaluation(self._known(method), grid.required, self.consecutive) is None:
                    first = window_start(self._known(method), grid.required, self.consecutive)
                    self._met_at[method, running[method]] = grid.samples_seen[first + self.consecutive - 1]
        else:
            self.traces.add(self._now, now.correct, now.not_finite)
            self._streaks = np.where(now.correct >= grid.required, self._streaks + 1, 0)
            self._met_at[self._waiting & ~self.met & (self._streaks >= self.consecutive)] = now.samples_seen
        self.traces.write_if_due()
        if trainer.loggers and self._is_last:
            self._log(trainer, self._now, pl_module.logged())
        if self.met[self._waiting].all():
            trainer.should_stop = True
        elif self.stops:
            self._stop_methods(pl_module)

    def _stop_methods(self, comparison: Comparison) -> None:
        """Stop the methods that have met the criterion in every ordering that they are fed."""
        running = self.traces.running
        ended = running & (self.met | ~running).all(1, keepdims=True)
        if ended.any():
            comparison.require_unspoilt()
            self.traces.finish(ended)
            for method in np.flatnonzero(ended.any(1)).tolist():
                comparison.stop(method)

    def log_rest(self, trainer: Trainer) -> None:
        """Log what was not logged while it was measured, because it was stored before.

        Args:
            trainer: Whose loggers.
        """
        self._log_stored(trainer, int(self.traces.lengths.max()))

    def _log_stored(self, trainer: Trainer, end: int) -> None:
        for place in range(self._logged, end) if trainer.loggers else ():
            self._log(trainer, place, {})

    def _log(self, trainer: Trainer, place: int, logged: dict[str, float]) -> None:
        """Log one evaluation of every method that was evaluated there: mean and band, share that met the criterion."""
        self._logged = place + 1
        samples = int(self.traces.grid.samples_seen[place])
        metrics: dict[str, float] = {**logged, "samples_seen": samples}
        for name, correct, met in zip(self.methods, self.traces.correct[place], self._met_at <= samples, strict=True):
            accuracy = correct[correct >= 0] / self.traces.grid.all_correct
            if len(accuracy):
                low, high = np.percentile(accuracy, BAND)
                metrics[f"val/{self.measure}/{name}"] = float(accuracy.mean())
                metrics[f"val/{self.measure}/{name}/p{BAND[0]}"] = float(low)
                metrics[f"val/{self.measure}/{name}/p{BAND[1]}"] = float(high)
                metrics[f"reached/{name}"] = float(met.mean())
        for logger in trainer.loggers:
            logger.log_metrics(metrics, step=samples)

    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Store what was measured, and say why the run ended."""
        assert isinstance(pl_module, Comparison)
        running, end = self.traces.running, self.traces.grid.samples_seen[-1]
        if self.met[running].all() or self.traces.lengths[running].min() == len(self.traces.correct):
            pl_module.require_unspoilt()
            self.traces.finish(running)
            self.checkpoints.finish(pl_module, running & ~self.met, pl_module.samples_seen == end)
        else:
            self.cut_off_because = "an option of the trainer stopped it early"
            self.traces.write()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Store what was measured before the run was cut off, but for what a method has spoilt."""
        assert isinstance(pl_module, Comparison)
        self.is_mistaken = isinstance(exception, UserError)
        kind = "" if self.is_mistaken else f"{type(exception).__name__}: "
        self.cut_off_because = CUT_OFF.get(type(exception), f"error: {kind}{exception}")
        if self.is_lazy and self._now is not None and self._next <= self._now:
            self.traces.leave_out(self._now)
        if pl_module.spoilt():
            self.traces.discard()
        else:
            self.traces.write()
