"""Progress bars of a comparison and of training."""

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ProgressBar

from headstart.callbacks.sample_efficiency import SampleEfficiency
from headstart.modules.comparison import Comparison
from headstart.modules.photo_training import PhotoTraining
from headstart.output.progress import Progress


class _ProgressBar(ProgressBar):
    """A progress bar that is closed when training ends or fails."""

    def __init__(self) -> None:
        super().__init__()
        self.progress: Progress | None = None

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Close the bar."""
        self._close()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Close the bar, so that later lines are printed below."""
        self._close()

    def _close(self) -> None:
        if self.progress is not None:
            self.progress.__exit__()


class ComparisonProgress(_ProgressBar):
    """Shows the samples seen, and how many traces (a method in an ordering) have met the criterion.

    Args:
        criterion: The callback that holds the state of the criterion.
    """

    def __init__(self, criterion: SampleEfficiency) -> None:
        super().__init__()
        self.criterion = criterion

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Show the bar."""
        assert isinstance(pl_module, Comparison)
        self.progress = Progress("training", pl_module.stream.max_samples, "samples").__enter__()

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Advance the bar."""
        assert isinstance(pl_module, Comparison)
        met = self.criterion.met
        if self.progress is not None:
            self.progress.show(pl_module.samples_seen, f"criterion met {met.sum()}/{met.size}")

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Show the last state, and close the bar."""
        self.on_validation_end(trainer, pl_module)
        super().on_train_end(trainer, pl_module)


class TrainingProgress(_ProgressBar):
    """Shows the batches that were trained on, and the accuracy on the validation photos if it is measured."""

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Show the bar."""
        assert trainer.max_epochs is not None
        batches = int(trainer.num_training_batches)
        self.progress = Progress("training", trainer.max_epochs * batches, "batches").__enter__()

    def on_train_batch_end(self, *_: object) -> None:
        """Advance the bar."""
        if self.progress is not None:
            self.progress.advance()

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Show the accuracy."""
        assert isinstance(pl_module, PhotoTraining)
        measured = pl_module.measured
        if self.progress is not None and measured in trainer.callback_metrics:
            epoch, value = trainer.current_epoch + 1, float(trainer.callback_metrics[measured])
            self.progress.show(self.progress.done, f"{measured} {value:.4f} after epoch {epoch}")
