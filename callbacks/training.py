"""Training for some epochs, which signals end as they end the commands."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import Timer
from lightning.pytorch.trainer.states import RunningStage
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch import Tensor
from torch.utils.data import DataLoader

from headstart.modules.photo_training import PhotoTraining
from headstart.output.errors import Terminated

Loader = DataLoader[tuple[Tensor, Tensor]]


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


def train(trainer: Trainer, model: PhotoTraining, batches: Loader, validation: Loader | None = None) -> bool:
    """Train to the last epoch.

    Args:
        trainer: The trainer.
        model: The model.
        batches: The training photos.
        validation: The photos on which the accuracy is measured after every epoch, if it is.

    Returns:
        Whether all epochs were trained to their end; an option of the trainer may have ended training before.

    Raises:
        UserError: The loss is not finite.
        KeyboardInterrupt: It was interrupted.
        Terminated: It was terminated.
    """
    with raising_signals(trainer):
        trainer.fit(model, batches, validation)
    epochs, last = trainer.fit_loop.epoch_progress.current, trainer.fit_loop.epoch_loop.batch_progress
    return epochs.completed == trainer.max_epochs and last.is_last_batch
