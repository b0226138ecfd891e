"""Cells and tables of a page, from numbers and from tables of texts."""

from collections.abc import Mapping, Sequence
from typing import Any

from headstart.output.page.layout import Cell, Column, Table
from headstart.output.tables import Cells, format_number

# The columns that a phone shows at once, where a table does not say which are essential.
MOST_COLUMNS = 3
# Headers of the columns that name methods.
NAMING = ("method", "better", "worse")
# Between the ends of an interval: a narrow column breaks before an interval, not within it.
COMMA = ",\N{NO-BREAK SPACE}"


def number(value: float | None, form: str = ".4g", interval: Sequence[float | None] | None = None) -> Cell:
    """Format a number with its interval; a missing number or an unbounded end is a dash."""
    if value is None:
        return Cell("–")
    shown = format_number(value, form)
    if interval is None:
        return Cell(shown)
    ends = "–" if all(end is None for end in interval) else COMMA.join(format_number(end, form) for end in interval)
    return Cell(f"{shown} [{ends}]")


def text(value: Any) -> Cell:  # noqa: ANN401 - whatever JSON holds
    """Format a text, or a dash if there is none."""
    return Cell("–" if value in (None, "") else str(value))


def texts_table(
    title: str,
    rows: Cells,
    methods: Sequence[str] = (),
    *,
    essential: Sequence[str] = (),
    hints: Mapping[str, str] | None = None,
    note: str = "",
) -> Table:
    """Return a table of texts as a page shows it.

    Args:
        title: Its title.
        rows: The header, and the rows.
        methods: Names of methods, beside which their lines are drawn; an addition in brackets may follow a name.
        essential: Headers of the columns that a phone shows at once; by default the first ones.
        hints: Tooltips of columns, by their headers.
        note: The note below it.
    """
    header, *cells = rows
    main = essential or header[:MOST_COLUMNS]
    words = (*NAMING, "group")
    columns = [Column(each, (hints or {}).get(each, ""), each in words, each not in main) for each in header]

    def cell(header: str, shown: str) -> Cell:
        if header in NAMING:
            names = (each for each in (shown, shown.rpartition(" (")[0]) if each in methods)
            return Cell(shown, method=next(names, ""))
        return Cell(shown.replace(", ", COMMA) if "[" in shown else shown or "–")

    return Table(title, columns, [list(map(cell, header, row)) for row in cells], note)
