"""The progress of a comparison."""

from __future__ import annotations

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ProgressBar

from callbacks.sample_efficiency import SampleEfficiency
from modules.comparison import Comparison
from output.progress import Progress


class ComparisonProgress(ProgressBar):
    """Shows the samples seen, and how many runs (a method in an ordering) have met the criterion.

    Args:
        criterion: The callback that holds the state of the criterion.
    """

    def __init__(self, criterion: SampleEfficiency) -> None:
        super().__init__()
        self.criterion = criterion
        self.shown: Progress | None = None

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
        self._close()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """End, so that what follows is printed below."""
        self._close()

    def _close(self) -> None:
        if self.shown is not None:
            self.shown.__exit__()
