"""Ctrl-C and SIGTERM, deferred while something must not be interrupted."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOPS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Defer signals that stop a command until the end of the block."""
    # Signals reach the main thread alone.
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    received: list[tuple[int, FrameType | None]] = []
    numbers = [number for number in STOPS if signal.getsignal(number) is not signal.SIG_IGN]
    handlers = {number: signal.signal(number, lambda *signaled: received.append(signaled)) for number in numbers}
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, handlers[number])
        for first, frame in received[:1]:
            handler = handlers[signal.Signals(first)]
            if callable(handler):
                handler(first, frame)
            elif handler == signal.SIG_DFL:
                signal.raise_signal(first)
