"""How far a long computation is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Self, TypeVar

from headstart.output.printable import printable, say

if TYPE_CHECKING:
    import rich.progress

BAR = 16
# Least seconds between two lines: where another tenth is done, and elsewhere.
AT_A_TENTH, ELSEWHERE = 5.0, 30.0

Item = TypeVar("Item")


class Progress:
    """Shows on the error stream how much is done, from `with` to its end.

    Without a terminal that can move its cursor, a line is printed at every tenth and every 30 seconds. Nothing is
    printed for less than 5 seconds.

    Args:
        title: Title of the computation.
        total: How much there is to do.
        unit: Name of the items, in the plural.
    """

    def __init__(self, title: str, total: int, unit: str) -> None:
        self.title, self.total, self.unit = printable(title), total, unit
        self.done = self._printed_done = self._tenths = 0
        self.note = ""
        self._bar: rich.progress.Progress | None = None

    def __enter__(self) -> Self:
        """Begin."""
        self._started = self._printed = time.monotonic()
        if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            self._bar = _open_bar(self.title, self.total)
        return self

    def advance(self, amount: int = 1) -> None:
        """Show that an amount more is done."""
        self.show(self.done + amount, self.note)

    def show(self, done: int, note: str = "") -> None:
        """Show how much is done from the beginning, and other texts."""
        self.done, self.note = done, printable(note)
        now = time.monotonic()
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done, state=self._state(now))
            return
        tenths = 10 * done // self.total if self.total else 0
        if now - self._printed >= (AT_A_TENTH if tenths > self._tenths else ELSEWHERE):
            self._print(now)
            self._tenths = tenths

    def __exit__(self, *exception: object) -> None:
        """End, at the last state."""
        if self._bar is not None:
            self._bar.stop()
        elif 0 < self._printed_done < self.done:
            self._print(time.monotonic())

    def _print(self, now: float) -> None:
        seconds = now - self._started
        remaining = self.total - self.done
        left = f", {_clock(seconds * remaining / self.done)} left" if self.done and remaining > 0 else ""
        say(f"{self.title}: {self._state(now)}, {_clock(seconds)} passed{left}", sys.stderr)
        self._printed, self._printed_done = now, self.done

    def _state(self, now: float) -> str:
        # A clock may be too coarse for the first of many.
        speed = self.done / max(now - self._started, 1e-3)
        return f"{self.done:,}/{self.total:,} {self.unit}, {speed:.3g}/s" + (f", {self.note}" if self.note else "")


def track(items: Sequence[Item], title: str, unit: str) -> Iterator[Item]:
    """Iterate, showing how many items are done of what is computed; the unit is what they are, in the plural."""
    with Progress(title, len(items), unit) as progress:
        for item in items:
            yield item
            progress.advance()


def _open_bar(title: str, total: int) -> rich.progress.Progress:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    # A title may hold brackets, which are no markup.
    name, state = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[state]}", markup=False)
    bar = Bar(
        name, BarColumn(BAR), state, TimeRemainingColumn(elapsed_when_finished=True), console=Console(stderr=True)
    )
    bar.add_task(title, total=total, state="")
    bar.start()
    return bar


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
