"""Training for some epochs: it continues where it was cut off, and signals end it."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import Checkpoint, Timer
from lightning.pytorch.trainer.states import RunningStage
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch import Tensor
from torch.utils.data import DataLoader

from headstart.callbacks.run_folder import raise_unwritable
from headstart.modules.photo_training import PhotoTraining
from headstart.output.errors import Terminated
from headstart.output.files import replacing
from headstart.output.printable import say

Loader = DataLoader[tuple[Tensor, Tensor]]

# A killed process repeats epochs that took less time in all.
SECONDS_BETWEEN = 2.0


class _ExceptionRecorder(Callback):
    exception: BaseException | None = None

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self.exception = exception


@contextmanager
def raising_signals(trainer: Trainer) -> Iterator[None]:
    """Raise Ctrl-C or SIGTERM that ends `trainer.fit` within the block as the commands do.

    Args:
        trainer: The trainer.

    Raises:
        KeyboardInterrupt: It was interrupted.
        Terminated: It was terminated.
    """
    recorder = _ExceptionRecorder()
    callbacks: list[Callback] = trainer.callbacks  # type: ignore[attr-defined]
    callbacks.append(recorder)
    try:
        yield
    except SIGTERMException as error:
        # It has no exit code, so the process would end as if it had succeeded.
        raise Terminated from error
    except SystemExit as error:
        # Lightning turns Ctrl-C into the exit code of an error.
        if isinstance(recorder.exception, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise
    finally:
        callbacks.remove(recorder)


def continue_timers(timers: Iterable[Timer]) -> None:
    """Continue timers in another `Trainer.fit`, so that their time is that of all of them together.

    Args:
        timers: The timers.
    """
    for timer in timers:
        timer.load_state_dict(timer.state_dict())
        # Time would stand still at the end of the fit before.
        timer._start_time, timer._end_time = dict.fromkeys(RunningStage), dict.fromkeys(RunningStage)


class EpochCheckpoint(Checkpoint):
    """Writes the state of training at the end of an epoch to one file, which is complete or missing.

    Args:
        file: The file.

    Attributes:
        trained: Epochs that were trained to their end.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.trained = 0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start measuring time, and print where training continues."""
        trained = trainer.current_epoch
        if trained:
            say(f"Resumed after {trained} of {trainer.max_epochs} epochs, from the checkpoint {self.file}.")
        self._saved = time.monotonic()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write the file, unless training has just begun or is finished."""
        if not trainer.fit_loop.epoch_loop.batch_progress.is_last_batch:
            # An option of the trainer cut the epoch short.
            return
        self.trained = trainer.current_epoch + 1
        if self.trained == trainer.max_epochs or time.monotonic() - self._saved < SECONDS_BETWEEN:
            return
        try:
            with replacing(self.file) as partial:
                trainer.save_checkpoint(partial)
        except (OSError, RuntimeError) as error:
            raise_unwritable(self.file.parent, error)
        self._saved = time.monotonic()


def train(
    trainer: Trainer, model: PhotoTraining, file: Path, batches: Loader, validation: Loader | None = None
) -> bool:
    """Train to the last epoch, from the checkpoint if there is one.

    Args:
        trainer: The trainer.
        model: The model.
        file: The checkpoint; the caller removes it when the results are written.
        batches: The training photos.
        validation: The photos on which the accuracy is measured after every epoch, if it is.

    Returns:
        Whether all epochs were trained to their end; an option of the trainer may have ended training before.

    Raises:
        UserError: The loss is not finite, or the file cannot be written.
        KeyboardInterrupt: It was interrupted.
        Terminated: It was terminated.
    """
    checkpoint = EpochCheckpoint(file)
    trainer.callbacks.append(checkpoint)  # type: ignore[attr-defined]
    with raising_signals(trainer):
        trainer.fit(model, batches, validation, ckpt_path=str(file) if file.is_file() else None, weights_only=True)
    return checkpoint.trained == trainer.max_epochs
