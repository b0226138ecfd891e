"""Ctrl-C and SIGTERM that come in the middle of what must not be left half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOPS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Let signals that stop a command wait until the end."""
    if threading.current_thread() is not threading.main_thread():
        yield  # which signals do not reach
        return
    came: list[tuple[int, FrameType | None]] = []
    heeded = [number for number in STOPS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, lambda *given: came.append(given)) for number in heeded}
    try:
        yield
    finally:
        for stop in heeded:
            signal.signal(stop, before[stop])
        for number, frame in came[:1]:
            handler = before[signal.Signals(number)]
            if callable(handler):
                handler(number, frame)
            elif handler == signal.SIG_DFL:
                signal.raise_signal(number)
