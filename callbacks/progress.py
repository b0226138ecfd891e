"""The progress bar of a comparison."""

from __future__ import annotations

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ProgressBar
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from callbacks.sample_efficiency import SampleEfficiency


class ComparisonProgress(ProgressBar):
    """Shows the samples seen, and how many runs (a method in an ordering) have met the criterion.

    Args:
        criterion: The callback that holds the state of the criterion.
    """

    def __init__(self, criterion: SampleEfficiency) -> None:
        super().__init__()
        self.criterion = criterion

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Open the bar."""
        columns = (TextColumn("samples"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self.bar = Progress(*columns, TextColumn("criterion met by {task.fields[met]}"))
        self.task = self.bar.add_task("", total=trainer.datamodule.max_samples, met="none")  # type: ignore[attr-defined]
        self.bar.start()

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Advance the bar."""
        self._show(pl_module)

    def _show(self, pl_module: LightningModule) -> None:
        met = self.criterion.met
        self.bar.update(self.task, completed=pl_module.samples_seen, met=f"{met.sum()}/{met.size}")  # type: ignore[arg-type]

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Close the bar, at its last state."""
        self._show(pl_module)
        self.bar.stop()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Close the bar, so that what follows is printed below it."""
        if hasattr(self, "bar"):
            self.bar.stop()
