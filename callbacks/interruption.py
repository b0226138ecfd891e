"""Ctrl-C and SIGTERM while Lightning trains, raised as the commands expect them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities.exceptions import SIGTERMException

from headstart.output.errors import Terminated


class _ExceptionRecorder(Callback):
    exception: BaseException | None = None

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self.exception = exception


@contextmanager
def signals_of(trainer: Trainer) -> Iterator[None]:
    """Raise the signal that ended `trainer.fit` within the block as Python and the commands do.

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
