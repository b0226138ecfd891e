"""The criterion of sample efficiency, with early stopping."""

from __future__ import annotations

import math

import numpy as np
from jsonargparse.typing import ClosedUnitInterval, PositiveInt
from lightning.pytorch import Callback, LightningModule, Trainer
from numpy.typing import NDArray

from metrics.sample_efficiency.curves import required_correct
from modules.comparison import Comparison

BAND = (10, 90)


class SampleEfficiency(Callback):
    """Keeps the trace of every method and ordering, and stops once all have met the criterion.

    After the run `correct` holds the trace, `[methods, orderings, evaluations]`, and `samples_seen` the samples
    that an ordering had fed at each evaluation, `[evaluations]`.

    Args:
        threshold: Validation accuracy that counts as reached; exactly this accuracy does.
        consecutive: Evaluations in a row at which it must be reached.
        evaluate_every: Batches between two evaluations.
    """

    def __init__(
        self, threshold: ClosedUnitInterval = 0.8, consecutive: PositiveInt = 10, evaluate_every: PositiveInt = 1
    ) -> None:
        self.threshold = threshold
        self.consecutive = consecutive
        self.evaluate_every = evaluate_every
        self.stopped_because = ""
        self.evaluations = 0
        self._correct = np.zeros((1, 0, 0), dtype=np.int64)
        self._samples_seen = np.zeros(1, dtype=np.int64)
        self._streaks = np.zeros(0, dtype=np.int64)
        self.met = np.zeros(0, dtype=bool)

    @property
    def correct(self) -> NDArray[np.int64]:
        """Correct predictions so far, `[methods, orderings, evaluations]`."""
        return np.moveaxis(self._correct[: self.evaluations], 0, -1)

    @property
    def samples_seen(self) -> NDArray[np.int64]:
        """Samples that an ordering had fed at each evaluation so far, `[evaluations]`."""
        return self._samples_seen[: self.evaluations]

    @property
    def complete(self) -> bool:
        """Whether there is nothing left to measure: all have met the criterion, or the sample limit was reached."""
        return bool(self.met.all()) or self.evaluations == len(self._samples_seen)

    def evaluations_within(self, max_samples: int, batch_size: int) -> int:
        """Count the evaluations of a stream of `max_samples` in batches, of which the last may be smaller."""
        batches = math.ceil(max_samples / batch_size)
        return int(batches // self.evaluate_every)

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start with no streak."""
        assert isinstance(pl_module, Comparison)
        begun = pl_module.snapshot()
        self.validation_size = begun.validation_size
        self.required = required_correct(self.threshold, self.validation_size)
        # Set aside at once: small blocks kept from every evaluation would scatter over the heap and make it grow.
        planned = self.evaluations_within(begun.max_samples, begun.batch_size)
        self._correct = np.zeros((planned, *begun.correct.shape), dtype=np.int64)
        self._samples_seen = np.zeros(planned, dtype=np.int64)
        self._streaks = np.zeros(begun.correct.shape, dtype=np.int64)
        self.met = np.zeros(self._streaks.shape, dtype=bool)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Take the counts of one evaluation, and stop if nothing is left to wait for."""
        assert isinstance(pl_module, Comparison)
        now = pl_module.snapshot()
        self._correct[self.evaluations] = now.correct
        self._samples_seen[self.evaluations] = now.samples_seen
        self.evaluations += 1
        self._streaks = np.where(now.correct >= self.required, self._streaks + 1, 0)
        self.met |= self._streaks >= self.consecutive
        if trainer.loggers:
            self._log(trainer, now.methods)
        if self.met.all():
            trainer.should_stop = True

    def _log(self, trainer: Trainer, names: list[str]) -> None:
        """Log the last evaluation of every method: mean and band of the accuracy, share of orderings that met it."""
        last = self.evaluations - 1
        samples, accuracy = int(self._samples_seen[last]), self._correct[last] / self.validation_size
        low, high = np.percentile(accuracy, BAND, axis=1)
        series = {
            "val/accuracy/{}": accuracy.mean(1),
            f"val/accuracy/{{}}/p{BAND[0]}": low,
            f"val/accuracy/{{}}/p{BAND[1]}": high,
            "reached/{}": self.met.mean(1),
        }
        metrics = {
            key.format(name): float(v) for key, values in series.items() for name, v in zip(names, values, strict=True)
        }
        metrics["samples_seen"] = samples
        for logger in trainer.loggers:
            logger.log_metrics(metrics, step=samples)

    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Say why the run ended."""
        self._conclude("an option of the trainer stopped it early")

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Say that the run was cut off."""
        interrupted = isinstance(exception, KeyboardInterrupt)
        self._conclude("interrupted" if interrupted else f"error: {type(exception).__name__}: {exception}")

    def _conclude(self, otherwise: str) -> None:
        if not self.complete:
            self.stopped_because = otherwise
        elif self.met.all():
            self.stopped_because = "every method met the criterion in every ordering"
        else:
            self.stopped_because = "the sample limit was reached"
