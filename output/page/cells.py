"""The cells of a page's tables."""

from collections.abc import Sequence
from typing import Any

from headstart.output.page.layout import Cell
from headstart.output.tables import format_number

Interval = Sequence[float | None] | None


def number(value: float | None, form: str = ".4g", interval: Interval = None) -> Cell:
    """Format a number with its interval; a dash stands for a missing number or an unbounded end."""
    if value is None:
        return Cell("–")
    shown = format_number(value, form)
    return Cell(shown if interval is None else f"{shown} {between(interval, form)}")


def between(interval: Interval, form: str = ".4g") -> str:
    """Format an interval in brackets."""
    if interval is None or all(end is None for end in interval):
        return "[–]"
    return f"[{', '.join(format_number(end, form) for end in interval)}]"


def share(value: float | None, form: str = ".1%") -> Cell:
    """Format a share in per cent."""
    return number(value, form)


def text(value: Any) -> Cell:  # noqa: ANN401 - whatever JSON holds
    """Format a text, or a dash if there is none."""
    return Cell("–" if value in (None, "") else str(value))


def p_value(value: float | None) -> Cell:
    """Format a p value."""
    return number(value, ".2g")
