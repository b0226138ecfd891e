"""The criterion of sample efficiency, with early stopping."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from jsonargparse.typing import ClosedUnitInterval, PositiveInt
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities.exceptions import SIGTERMException
from numpy.typing import NDArray

from headstart.callbacks.traces import Grid, Traces
from headstart.metrics.sample_efficiency.curves import (
    CONSECUTIVE,
    NOT_EVALUATED,
    SKIPPED,
    THRESHOLD,
    Measure,
    required_correct,
)
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
    """Measures accuracies, and stops when all methods have met the criterion, or at the sample limit.

    Args:
        threshold: Validation accuracy to reach, inclusive. `reference` stands for the threshold that a sweep finds by
            its reference runs.
        consecutive: Number of evaluations in a row that must reach the threshold.
        evaluate_every: Number of batches between two evaluations.
        measure: `accuracy`, or `balanced_accuracy`, the mean of the accuracies of the classes. Use the latter for
            classes of unequal sizes.
        evaluation: Make `every` evaluation, or only those that decide when the criterion is met (`lazy`). Lazy runs
            measure the same samples to criterion, but no learning curves or accuracies.
        stop_when_met: Stop training and evaluating a method when it has met the criterion in all orderings that run
            together. Lazy evaluation does so as well.
        until: End when all methods have met the `criterion`, or only at the sample `limit`. With `limit`, accuracies
            are known up to the limit.

    Attributes:
        now: Number of the current evaluation; None if the protocol has none now.
        logged: What methods have logged last at each evaluation, by `METHOD/NAME`.
    """

    traces: Traces

    def __init__(
        self,
        threshold: ClosedUnitInterval | Literal["reference"] = THRESHOLD,
        consecutive: PositiveInt = CONSECUTIVE,
        evaluate_every: PositiveInt = 1,
        measure: Measure = "accuracy",
        evaluation: Literal["every", "lazy"] = "every",
        stop_when_met: bool = False,
        until: Literal["criterion", "limit"] = "criterion",
    ) -> None:
        if until == "limit" and (stop_when_met or evaluation == "lazy"):
            other = "stop_when_met=true" if stop_when_met else "evaluation=lazy"
            raise UserError(f"criterion.until: limit continues after the criterion, but criterion.{other} stops there")
        if isinstance(threshold, str):
            raise UserError(
                "criterion.threshold: reference stands for the threshold that headstart sweep finds where its file has "
                "the key reference; give a number from 0 to 1"
            )
        self.threshold = threshold
        self.consecutive = consecutive
        self.evaluate_every = evaluate_every
        self.measure = measure
        self.is_lazy = evaluation == "lazy"
        self.stops = stop_when_met or self.is_lazy
        self.until = until
        self.cut_off_because = ""
        # Whether the user's mistake cut the run off, with which the command ends.
        self.ended_by_user_error = False
        self.now: int | None = None

    def grid(self, max_samples: int, batch_size: int, all_correct: int) -> Grid:
        """Return the evaluations of a whole stream.

        Args:
            max_samples: Samples that an ordering feeds.
            batch_size: Samples in a batch; the last may be smaller.
            all_correct: The count if all predictions are correct.
        """
        evaluations = math.ceil(max_samples / batch_size) // self.evaluate_every
        seen = np.arange(1, evaluations + 1) * self.evaluate_every * batch_size
        required = required_correct(self.threshold, all_correct)
        return Grid(np.minimum(seen, max_samples), all_correct, required, self.consecutive, self.until == "limit")

    def follow(self, traces: Traces, methods: Sequence[str], validation_size: int) -> None:
        """Follow the traces of a comparison, some of which may be stored.

        Args:
            traces: The traces.
            methods: Names of the methods.
            validation_size: Number of validation samples.
        """
        self.traces, self.methods, self.validation_size = traces, methods, validation_size
        # Samples at which a trace has met the criterion, infinite until then.
        self._logged, self.logged = 0, dict[int, dict[str, float]]()
        self.look_up()

    def look_up(self) -> None:
        """Look up in the traces when each has met the criterion."""
        self._met_at = self.traces.met_at

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start without a streak."""
        self._waiting = self.traces.running.copy()
        self._streaks = np.zeros(self._waiting.shape, dtype=np.int64)
        self._met_at[self._waiting] = np.inf
        self._next, self.now = 0, None
        # A logged curve is over all orderings, so it waits for the last pass.
        self._is_last = not (self.traces.missing & ~self._waiting).any()

    @property
    def met(self) -> NDArray[np.bool_]:
        """Return whether each trace has met the criterion so far, `[methods, orderings]`."""
        return self._met_at < np.inf

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Find the number of this evaluation; Lightning's extra one after an early stop has none."""
        assert isinstance(pl_module, Comparison)
        numbers = np.flatnonzero(self.traces.grid.samples_seen == pl_module.samples_seen)
        is_due = len(numbers) and numbers[0] >= self._next and not trainer.sanity_checking
        self.now = int(numbers[0]) if is_due else None
        if self.now is not None and self.is_lazy:
            self.traces.mark(self.now, SKIPPED)

    def wanted(self, method: int) -> int | None:
        """Return the number of the evaluation to make next of a method; None if it has to learn more.

        Args:
            method: Its index.
        """
        assert self.now is not None
        wanted = next_evaluation(self._known(method), self.traces.grid.required, self.consecutive)
        return None if wanted is None or wanted > self.now else wanted

    def record(self, method: int, evaluation: int, correct: NDArray[np.int64], not_finite: NDArray[np.int64]) -> None:
        """Add the counts of an evaluation that `wanted` returned.

        Args:
            method: Index of the method.
            evaluation: Number of the evaluation.
            correct: Correct predictions, `[1]`.
            not_finite: Predictions that are not finite numbers, `[1]`.
        """
        counted = self.traces.running & (np.arange(len(self.methods)) == method)[:, None]
        self.traces.add(evaluation, counted, correct, not_finite)

    def needed(self, method: int) -> list[int]:
        """Return the evaluations up to now that `wanted` may still return of a method, in order.

        Args:
            method: Its index.
        """
        counts = self._known(method)
        first = window_start(counts, self.traces.grid.required, self.consecutive)
        return [first + int(offset) for offset in np.flatnonzero(counts[first:] == SKIPPED)]

    def _known(self, method: int) -> NDArray[np.int64]:
        """Return the counts of a method up to now, in the one ordering that runs."""
        assert self.now is not None
        return self.traces.correct[: self.now + 1, method, self.traces.running[method]][:, 0]

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Add the counts of one evaluation, and stop traces that have met the criterion."""
        assert isinstance(pl_module, Comparison)
        if self.now is None:
            return
        correct, not_finite = pl_module.counted()
        if pl_module.samples_validated != self.validation_size:
            raise UserError(
                f"trainer.limit_val_batches: {pl_module.samples_validated} of {self.validation_size} validation photos "
                "were evaluated; an evaluation needs all"
            )

        self._next = self.now + 1
        if self.is_lazy:
            self._update_met_lazily()
        else:
            self.traces.add(self.now, self.traces.running, correct, not_finite)
            self._streaks = np.where(correct >= self.traces.grid.required, self._streaks + 1, 0)
            has_met = self._waiting & ~self.met & (self._streaks >= self.consecutive)
            self._met_at[has_met] = pl_module.samples_seen

        if trainer.loggers:
            self.logged.setdefault(self.now, {}).update(pl_module.logged())
            if self._is_last:
                self._log(trainer, self.now)
        if self.met[self._waiting].all() and not self.traces.grid.to_limit:
            trainer.should_stop = True
        elif self.stops:
            self._stop_methods(pl_module)

    def _update_met_lazily(self) -> None:
        """Find the methods that need no further evaluation, because they have met the criterion."""
        running, grid = self.traces.running, self.traces.grid
        for method in np.flatnonzero(running.any(1)).tolist():
            counts = self._known(method)
            if next_evaluation(counts, grid.required, self.consecutive) is None:
                first = window_start(counts, grid.required, self.consecutive)
                self._met_at[method, running[method]] = grid.samples_seen[first + self.consecutive - 1]

    def _stop_methods(self, comparison: Comparison) -> None:
        """Stop the methods that have met the criterion in every running ordering."""
        running = self.traces.running
        ended = running & (self.met | ~running).all(1, keepdims=True)
        if ended.any():
            methods = np.flatnonzero(ended.any(1)).tolist()
            self._record_draws(comparison)
            self.traces.stop(ended)
            for method in methods:
                comparison.stop(method)

    def _record_draws(self, comparison: Comparison) -> None:
        """Record the methods that drew, before their traces are stored as finished."""
        self.traces.record_draws(self.methods.index(name) for name in comparison.drawing())

    def log_stored(self, trainer: Trainer, end: int) -> None:
        """Log evaluations that were not logged during measurement, because another pass followed or they were stored.

        Args:
            trainer: The trainer, which has the loggers.
            end: Number of the first evaluation that is not logged.
        """
        for evaluation in range(self._logged, end) if trainer.loggers else ():
            self._log(trainer, evaluation)

    def _log(self, trainer: Trainer, evaluation: int) -> None:
        """Log the share of orderings in which each method met the criterion, and the mean and band of its accuracies.

        These are logged only where it is evaluated in all orderings: a mean over some would be of others each time.
        """
        self._logged = evaluation + 1
        samples = int(self.traces.grid.samples_seen[evaluation])
        metrics: dict[str, float] = {**self.logged.get(evaluation, {}), "samples_seen": samples}
        counts, has_met = self.traces.correct[evaluation], self._met_at <= samples
        for name, correct, met in zip(self.methods, counts, has_met, strict=True):
            metrics[f"reached/{name}"] = float(met.mean())
            if correct.min() >= 0 and not self.is_lazy:
                accuracy = correct / self.traces.grid.all_correct
                low, high = np.percentile(accuracy, BAND)
                metrics[f"val/{self.measure}/{name}"] = float(accuracy.mean())
                metrics[f"band/{self.measure}/{name}/p{BAND[0]}"] = float(low)
                metrics[f"band/{self.measure}/{name}/p{BAND[1]}"] = float(high)
        for logger in trainer.loggers:
            logger.log_metrics(metrics, step=samples)

    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Store the traces of a pass that has ended, and record why the run ended."""
        assert isinstance(pl_module, Comparison)
        running = self.traces.running
        all_met = self.met[running].all() and not self.traces.grid.to_limit
        if all_met or self.traces.lengths[running].min() == len(self.traces.correct):
            pl_module.require_shared_unchanged()
            self._record_draws(pl_module)
            self.traces.finish()
        else:
            self.cut_off_because = "an option of the trainer stopped it early"

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Record why a run was cut off; what a method measured that has changed shared tensors is discarded."""
        assert isinstance(pl_module, Comparison)
        self.cut_off(exception)
        if self.is_lazy and self.now is not None and self._next <= self.now:
            self.traces.mark(self.now, NOT_EVALUATED)
        if pl_module.shared_changes():
            self.traces.discard()

    def cut_off(self, exception: BaseException) -> None:
        """Record why a run was cut off.

        Args:
            exception: What ended it.
        """
        self.ended_by_user_error = isinstance(exception, UserError)
        kind = "" if self.ended_by_user_error else f"{type(exception).__name__}: "
        self.cut_off_because = CUT_OFF.get(type(exception), f"error: {kind}{exception}")
