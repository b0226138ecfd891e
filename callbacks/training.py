"""Training for some epochs, which goes on where it was cut off."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Checkpoint
from torch import Tensor
from torch.utils.data import DataLoader

from headstart.callbacks.interruption import signals_of
from headstart.callbacks.run_folder import raise_unwritable
from headstart.modules.photo_training import PhotoTraining

Loader = DataLoader[tuple[Tensor, Tensor]]

# Where a process is killed, epochs that took less in all are trained again.
SECONDS_BETWEEN = 2.0


class EpochCheckpoint(Checkpoint):
    """Keeps the state of training at the end of an epoch, in one file that is there as a whole or not.

    Args:
        file: The file.

    Attributes:
        trained: Epochs that were trained to their end.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.trained = 0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin to measure time."""
        self._saved = time.monotonic()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write the file, unless training has just begun or is at its end."""
        if not trainer.fit_loop.epoch_loop.batch_progress.is_last_batch:
            # Cut short by an option of the trainer.
            return
        self.trained = trainer.current_epoch + 1
        if self.trained == trainer.max_epochs or time.monotonic() - self._saved < SECONDS_BETWEEN:
            return
        # Of its own name, so that what a killed process leaves is overwritten; one process alone writes to the folder.
        partial = self.file.with_suffix(".partial")
        try:
            trainer.save_checkpoint(partial)
            partial.replace(self.file)
        except (OSError, RuntimeError) as error:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            raise_unwritable(self.file.parent, error)
        self._saved = time.monotonic()


def train(
    trainer: Trainer, model: PhotoTraining, file: Path, batches: Loader, validation: Loader | None = None
) -> bool:
    """Train to the last epoch, from where the file says or from the beginning.

    Args:
        trainer: The trainer.
        model: What is trained.
        file: The checkpoint, which is removed by whoever has written what it led to.
        batches: What it is trained on.
        validation: What the accuracy is measured on after every epoch, if it is.

    Returns:
        Whether all epochs were trained to their end; an option of the trainer may have ended it before.

    Raises:
        UserError: The loss is not finite, or the file cannot be written.
        KeyboardInterrupt: It was interrupted.
        Terminated: It was terminated.
    """
    kept = EpochCheckpoint(file)
    trainer.callbacks.append(kept)  # type: ignore[attr-defined]
    before = str(file) if file.is_file() else None
    with signals_of(trainer):
        trainer.fit(model, batches, validation, ckpt_path=before)
    return kept.trained == trainer.max_epochs
