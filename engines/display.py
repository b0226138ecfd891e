"""How tasks are shown while they run: a bar with a line for every running one, or plain lines."""

from __future__ import annotations

import sys
import time
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

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
        self._live: Live | None = None
        self._lines: dict[str, str] = {}
        self._began: dict[str, float] = {}
        self._told: dict[str, float] = {}

    def __enter__(self) -> Self:
        """Begin."""
        # Taken now, because tasks in this process are listened to by taking sys.stderr.
        self._stream = sys.stderr
        console = Console(file=self._stream)
        if console.is_terminal and not console.is_dumb_terminal:
            title = TextColumn("{task.description}", markup=False)
            self._bar = Progress(title, BarColumn(16), MofNCompleteColumn(), TimeRemainingColumn(), console=console)
            self._whole = self._bar.add_task(self.title, total=self.total)
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
        lines = [Text(f"  {name}: {line}", no_wrap=True, overflow="ellipsis") for name, line in self._lines.items()]
        return Group(self._bar, *lines)

    def started(self, name: str, where: str) -> None:
        """Show that a task begins."""
        self._began[name] = self._told[name] = time.monotonic()
        self._lines[name] = f"begun on {where}"
        if self._live is None:
            self._print(f"{name}: begun on {where}")

    def said(self, name: str, line: str) -> None:
        """Show what a task says of itself last."""
        self._lines[name] = line
        if self._live is None and time.monotonic() - self._told.get(name, 0.0) > SECONDS_BETWEEN_LINES:
            self._told[name] = time.monotonic()
            self._print(f"{name}: {line}")

    def ended(self, name: str, state: str, error: str, again: bool) -> float:
        """Show how a task ended, and whether it is begun again; give the seconds that it took."""
        seconds = time.monotonic() - self._began.get(name, time.monotonic())
        self.done += not again
        self._lines.pop(name, None)
        if self._live is not None:
            self._bar.update(self._whole, completed=self.done)
        why, then = f" ({error})" * bool(error), "it is begun again" if again else f"after {seconds:.1f} s"
        self._print(f"[{self.done}/{self.total}] {name}: {state}{why}, {then}")
        return seconds

    def _print(self, line: str) -> None:
        if self._live is not None:
            self._live.console.print(line, markup=False, highlight=False)
        else:
            print(line, file=self._stream, flush=True)
