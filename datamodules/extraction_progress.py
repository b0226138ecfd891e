"""How far rows are computed: pictures a second, time left, shares of time, and what was reused at the end."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from headstart.output.printable import say
from headstart.output.progress import Progress

# Seconds from which on a computation is summed up in a line.
WORTH_A_LINE = 5.0

DECODING, NETWORK, WRITING = "waiting for pictures", "network", "writing"


@dataclass
class Step:
    """What was done since the last step.

    Attributes:
        pictures: Pictures whose rows were computed.
        unreadable: Those of them that cannot be decoded.
        seconds: Time by stage: `waiting for pictures`, which on a processor are decoded meanwhile, `network` and
            `writing`.
    """

    pictures: int
    unreadable: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)


# Receives steps.
Report = Callable[[Step], None]


class ExtractionProgress:
    """Adds up steps, shows them, and sums up long work at the end. It begins when the missing rows are known.

    Args:
        title: Source of the rows.
        total: All pictures that rows are needed of.
        before: Pictures of a larger whole that were computed before.
        after: Pictures of it that are to follow.
    """

    def __init__(self, title: str, total: int, before: int = 0, after: int = 0) -> None:
        self.title, self.total, self.before, self.after = title, total, before, after
        self.done = self.unreadable = 0
        self.seconds: Counter[str] = Counter()
        self._progress: Progress | None = None

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def begin(self, missing: int) -> None:
        """Show the progress of the missing rows.

        Args:
            missing: Their number; where others are computing some of them, those that are still missing then.
        """
        if self._progress is None:
            self._started = time.monotonic()
            self._progress = Progress(self.title, missing, "pictures", self.before, self.after).__enter__()

    def report(self, step: Step) -> None:
        """Add a step."""
        assert self._progress is not None
        self.done += step.pictures
        self.unreadable += step.unreadable
        self.seconds.update(step.seconds)
        self._progress.show(self.done, self.note())

    def retract(self, steps: Sequence[Step]) -> None:
        """Withdraw steps whose rows were lost."""
        for step in steps:
            self.done -= step.pictures
            self.unreadable -= step.unreadable
            self.seconds.subtract(step.seconds)

    def note(self) -> str:
        """Return the shares of the stages, and how many pictures are unreadable, in words."""
        whole = sum(self.seconds.values())
        shares = [f"{stage} {seconds / whole:.0%}" for stage, seconds in self.seconds.items()] if whole else []
        return ", ".join([*shares, *([f"{self.unreadable} unreadable"] if self.unreadable else [])])

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        """End; sum up what took a while."""
        if self._progress is None:
            return
        self._progress.__exit__(kind, *exception)
        seconds = time.monotonic() - self._started
        if kind is None and seconds >= WORTH_A_LINE:
            reused = max(0, self.total - self.done)
            counts = f"{self.done:,} rows computed, {reused:,} reused, {self.done / seconds:.3g} pictures a second"
            say(f"{self.title}: {counts}" + (f" ({note})" if (note := self.note()) else ""), sys.stderr)
