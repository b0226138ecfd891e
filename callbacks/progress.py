"""The progress of a comparison, and of training."""

from __future__ import annotations

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ProgressBar

from headstart.callbacks.sample_efficiency import SampleEfficiency
from headstart.modules.comparison import Comparison
from headstart.modules.photo_training import PhotoTraining
from headstart.output.progress import Progress


class _Shown(ProgressBar):
    """Shows the progress from the begin of training to its end, however that comes."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: Progress | None = None

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """End, at the last state."""
        self._close()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """End, so that what follows is printed below."""
        self._close()

    def _close(self) -> None:
        if self.shown is not None:
            self.shown.__exit__()


class ComparisonProgress(_Shown):
    """Shows the samples seen, and how many runs (a method in an ordering) have met the criterion.

    Args:
        criterion: The callback that holds the state of the criterion.
    """

    def __init__(self, criterion: SampleEfficiency) -> None:
        super().__init__()
        self.criterion = criterion

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin."""
        assert isinstance(pl_module, Comparison)
        self.shown = Progress("training", pl_module.stream.max_samples, "samples").__enter__()

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Advance."""
        assert isinstance(pl_module, Comparison)
        met = self.criterion.met
        if self.shown is not None:
            self.shown.show(pl_module.samples_seen, f"criterion met {met.sum()}/{met.size}")

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """End, at the last state."""
        self.on_validation_end(trainer, pl_module)
        super().on_train_end(trainer, pl_module)


class TrainingProgress(_Shown):
    """Shows the photos that were trained on, and the accuracy on the validation photos where it is measured."""

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin, or go on at a later epoch."""
        assert trainer.max_epochs is not None
        batches = int(trainer.num_training_batches)
        self.shown = Progress("training", trainer.max_epochs * batches, "batches").__enter__()
        self.shown.show(trainer.current_epoch * batches)

    def on_train_batch_end(self, *_: object) -> None:
        """Advance."""
        if self.shown is not None:
            self.shown.advance()

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Note the accuracy."""
        assert isinstance(pl_module, PhotoTraining)
        measured = pl_module.measured
        if self.shown is not None and measured in trainer.callback_metrics:
            epoch, value = trainer.current_epoch + 1, float(trainer.callback_metrics[measured])
            self.shown.show(self.shown.done, f"{measured} {value:.4f} after epoch {epoch}")
