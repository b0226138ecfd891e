"""Progress of tasks: a bar with a line for every running task on a terminal, plain lines elsewhere."""

import sys
import time
from datetime import timedelta
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from headstart.engines.task import Outcome, Task, TaskMessage
from headstart.output.printable import printable, say

# Without a terminal, the lines of one task are shown at this interval.
SECONDS_BETWEEN_LINES = 30.0
# A running task from which nothing has come for this long is shown as silent.
MINUTES_OF_SILENCE = 5


class Display:
    """Listens to tasks and shows their progress on the error stream, as a context.

    Args:
        title: What the tasks are for.
        total: Number of tasks.
    """

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.done = printable(title), total, 0
        self._live: Live | None = None
        self._lines: dict[str, str] = {}
        self._started: dict[str, float] = {}
        self._last_received: dict[str, float] = {}
        self._shown_silence: dict[str, int] = {}
        self._last_shown: dict[str, float] = {}
        self._hosts: dict[str, str] = {}
        # The first task that failed, by machine and error.
        self._first_failed: dict[tuple[str, str], str] = {}
        self._start = self._last = time.monotonic()

    def __enter__(self) -> Self:
        """Start."""
        # A task in this process redirects sys.stderr, so the stream is kept.
        self._stream = sys.stderr
        console = Console(file=self._stream)
        if console.is_terminal and not console.is_dumb_terminal:
            title, left = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[left]}")
            self._bar = Progress(title, BarColumn(16), MofNCompleteColumn(), left, console=console)
            self._bar_task = self._bar.add_task(self.title, total=self.total, left="")
            # The output of tasks in this process comes as messages, and not above the bar.
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
        self._bar.update(self._bar_task, left=self._time_left())
        lines = [
            Text(printable(f"  {name}: {self.silence(name) or line}"), no_wrap=True, overflow="ellipsis")
            for name, line in self._lines.items()
        ]
        return Group(self._bar, *lines)

    def _time_left(self) -> str:
        """Return the time left, as if the other tasks took as long as the finished ones."""
        if not 0 < self.done < self.total:
            return ""
        expected = (self._last - self._start) / self.done * self.total
        return f"about {timedelta(seconds=round(max(0.0, expected - (time.monotonic() - self._start))))} left"

    def receive(self, task: Task, message: TaskMessage) -> None:
        """Show that a task has started, or the last line that it has printed.

        Args:
            task: The task.
            message: Its message.
        """
        name, now = task.name, time.monotonic()
        self._last_received[name] = now
        if message.kind == "started":
            self._started[name], self._hosts[name] = now, message.content
            line, is_due = f"started on {message.content}", True
        elif message.kind == "printed":
            line, is_due = message.content, now - self._last_shown.get(name, 0.0) > SECONDS_BETWEEN_LINES
        else:
            return

        self._lines[name] = line
        if self._live is None and is_due:
            self._last_shown[name] = now
            self.print(f"{name}: {line}")

    def silence(self, name: str) -> str:
        """Return for how long nothing has come from a running task, in words; empty for less than 5 minutes.

        Args:
            name: The task.
        """
        minutes = int((time.monotonic() - self._last_received[name]) / 60)
        return f"silent for {minutes} minutes" if minutes >= MINUTES_OF_SILENCE else ""

    def waited(self) -> None:
        """Show the tasks that have become silent where there is no terminal, each every five minutes."""
        for name in self._lines if self._live is None else ():
            steps = int((time.monotonic() - self._last_received[name]) / 60 / MINUTES_OF_SILENCE)
            if steps > self._shown_silence.get(name, 0):
                self.print(f"{name}: {self.silence(name)}")
            self._shown_silence[name] = steps

    def ended(self, task: Task, outcome: Outcome, again: bool) -> None:
        """Show how a task ended; see `show_end`."""
        self.show_end(task.name, outcome.kind, outcome.error, again)

    def show_end(self, name: str, state: str, error: str, again: bool) -> float:
        """Show how a task ended; an error that another task on the same machine had before is not repeated.

        Args:
            name: The task.
            state: How it ended, one word.
            error: What went wrong.
            again: Whether it is started again.

        Returns:
            The seconds that it took.
        """
        self._last = time.monotonic()
        seconds = self._last - self._started.get(name, self._last)
        self.done += not again
        self._lines.pop(name, None)
        if self._live is not None:
            self._bar.update(self._bar_task, completed=self.done)

        first = self._first_failed.setdefault((self._hosts.get(name, ""), error), name)
        why = f" ({error if first == name else f'as {first}'})" * bool(error)
        then = "it is restarted" if again else f"after {seconds:.1f} s"
        line = f"[{self.done}/{self.total}] {name}: {state}{why}, {then}"
        self.print("; ".join(filter(None, [line, self._time_left()])))
        return seconds

    def print(self, line: str) -> None:
        """Show a line that stays."""
        if self._live is not None:
            self._live.console.print(printable(line), markup=False, highlight=False)
        else:
            say(line, self._stream)
