"""Ctrl-C and SIGTERM while Lightning trains, as the entries know them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities.exceptions import SIGTERMException

from headstart.output.errors import Terminated


class _Noted(Callback):
    exception: BaseException | None = None

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self.exception = exception


@contextmanager
def signals_of(trainer: Trainer) -> Iterator[None]:
    """Raise what ended `trainer.fit` from outside as Python and the entries do.

    Args:
        trainer: The trainer that is used within.

    Raises:
        KeyboardInterrupt: It was interrupted.
        Terminated: It was terminated.
    """
    noted = _Noted()
    callbacks: list[Callback] = trainer.callbacks  # type: ignore[attr-defined]
    callbacks.append(noted)
    try:
        yield
    except SIGTERMException as error:
        # Without a code of its own, it would end the process as if all were done.
        raise Terminated from error
    except SystemExit as error:
        # Lightning's own code for Ctrl-C is that of a mistake.
        if isinstance(noted.exception, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise
    finally:
        callbacks.remove(noted)
