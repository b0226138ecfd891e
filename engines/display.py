"""How tasks are shown while they run: a bar with a line for every running one, or plain lines."""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from headstart.output.printable import printable, say

# What is told between two lines of one task where there is no terminal.
SECONDS_BETWEEN_LINES = 30.0


class Display:
    """Shows tasks on the error stream, from `with` to its end.

    Args:
        title: What they are for.
        total: Number of tasks.
    """

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.done = printable(title), total, 0
        self._live: Live | None = None
        self._lines: dict[str, str] = {}
        self._began: dict[str, float] = {}
        self._told: dict[str, float] = {}
        self._places: dict[str, str] = {}
        # Who made a mistake first, by the machine and the mistake.
        self._mistaken: dict[tuple[str, str], str] = {}
        self._start = self._last = time.monotonic()

    def __enter__(self) -> Self:
        """Begin."""
        # Taken now, because tasks in this process are listened to by taking sys.stderr.
        self._stream = sys.stderr
        console = Console(file=self._stream)
        if console.is_terminal and not console.is_dumb_terminal:
            title, left = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[left]}")
            self._bar = Progress(title, BarColumn(16), MofNCompleteColumn(), left, console=console)
            self._whole = self._bar.add_task(self.title, total=self.total, left="")
            # What tasks in this process print is listened to, not shown above the bar.
            self._live = Live(
                get_renderable=self._render,
                console=console,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """End."""
        if self._live is not None:
            self._live.stop()

    def _render(self) -> Group:
        self._bar.update(self._whole, left=self._left())
        lines = [
            Text(printable(f"  {name}: {line}"), no_wrap=True, overflow="ellipsis")
            for name, line in self._lines.items()
        ]
        return Group(self._bar, *lines)

    def _left(self) -> str:
        """Give the time left, as if those to come took as long as those that are done."""
        if not 0 < self.done < self.total:
            return ""
        whole = (self._last - self._start) / self.done * self.total
        return f"about {timedelta(seconds=round(max(0.0, whole - (time.monotonic() - self._start))))} left"

    def started(self, name: str, where: str) -> None:
        """Show that a task begins."""
        self._began[name] = self._told[name] = time.monotonic()
        self._lines[name], self._places[name] = f"begun on {where}", where
        if self._live is None:
            self.tell(f"{name}: begun on {where}")

    def said(self, name: str, line: str) -> None:
        """Show what a task says of itself last."""
        self._lines[name] = line
        if self._live is None and time.monotonic() - self._told.get(name, 0.0) > SECONDS_BETWEEN_LINES:
            self._told[name] = time.monotonic()
            self.tell(f"{name}: {line}")

    def ended(self, name: str, state: str, error: str, again: bool) -> float:
        """Show how a task ended, and whether it is begun again; give the seconds that it took.

        An error that another task on the same machine has ended by is not told again.
        """
        self._last = time.monotonic()
        seconds = self._last - self._began.get(name, self._last)
        self.done += not again
        self._lines.pop(name, None)
        if self._live is not None:
            self._bar.update(self._whole, completed=self.done)
        first = self._mistaken.setdefault((self._places.get(name, ""), error), name)
        why = f" ({error if first == name else f'as {first}'})" * bool(error)
        then = "it is begun again" if again else f"after {seconds:.1f} s"
        self.tell("; ".join(filter(None, [f"[{self.done}/{self.total}] {name}: {state}{why}, {then}", self._left()])))
        return seconds

    def tell(self, line: str) -> None:
        """Show a line that stays."""
        if self._live is not None:
            self._live.console.print(printable(line), markup=False, highlight=False)
        else:
            say(line, self._stream)
