"""The cells of a page's tables."""

from collections.abc import Sequence
from typing import Any

from headstart.output.page.layout import Cell
from headstart.output.tables import format_number


def number(value: float | None, form: str = ".4g", interval: Sequence[float | None] | None = None) -> Cell:
    """Format a number with its interval; a missing number or an unbounded end is a dash."""
    if value is None:
        return Cell("–")
    shown = format_number(value, form)
    if interval is None:
        return Cell(shown)
    ends = "–" if all(end is None for end in interval) else ", ".join(format_number(end, form) for end in interval)
    return Cell(f"{shown} [{ends}]")


def text(value: Any) -> Cell:  # noqa: ANN401 - whatever JSON holds
    """Format a text, or a dash if there is none."""
    return Cell("–" if value in (None, "") else str(value))
