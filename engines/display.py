"""How tasks are shown while they run: a bar with a line for every running one, or plain lines."""

from __future__ import annotations

import sys
import time
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

# What is told between two lines of one task where there is no terminal.
SECONDS_BETWEEN_LINES = 30.0


class Display:
    """Shows tasks on the error stream, from `with` to its end.

    Args:
        title: What they are for.
        total: Number of tasks.
    """

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.done = title, total, 0
        self._bar: Progress | None = None
        self._lines: dict[str, TaskID] = {}
        self._told: dict[str, float] = {}

    def __enter__(self) -> Self:
        """Begin."""
        # Taken now, because tasks in this process are listened to by taking sys.stderr.
        console = Console(file=sys.stderr)
        self._stream = sys.stderr
        if console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(16), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=console, transient=True)
            self._bar.start()
            self._whole = self._bar.add_task(escape(self.title), total=self.total)
        return self

    def __exit__(self, *exception: object) -> None:
        """End."""
        if self._bar is not None:
            self._bar.stop()

    def started(self, name: str, where: str) -> None:
        """Show that a task begins."""
        self._told[name] = time.monotonic()
        if self._bar is None:
            self._print(f"{name}: begun on {where}")
        elif name not in self._lines:
            self._lines[name] = self._bar.add_task(escape(name), total=None)

    def said(self, name: str, line: str) -> None:
        """Show what a task says of itself last."""
        if self._bar is not None and name in self._lines:
            self._bar.update(self._lines[name], description=escape(f"{name}: {line}"))
        elif time.monotonic() - self._told.get(name, 0.0) > SECONDS_BETWEEN_LINES:
            self._told[name] = time.monotonic()
            self._print(f"{name}: {line}")

    def ended(self, name: str, state: str, final: bool) -> None:
        """Show how a task ended, and whether that is its end."""
        self.done += final
        if self._bar is not None:
            if name in self._lines:
                self._bar.remove_task(self._lines.pop(name))
            self._bar.update(self._whole, completed=self.done)
        self._print(f"[{self.done}/{self.total}] {name}: {state}")

    def _print(self, line: str) -> None:
        if self._bar is not None:
            self._bar.console.print(line, markup=False, highlight=False)
        else:
            print(line, file=self._stream, flush=True)
