"""The cells of a page's tables, and tables whose columns say which entry of a document they show."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from headstart.output.page.layout import Cell, Column, Table
from headstart.output.tables import format_number

# The columns of a table of texts that a phone shows at once.
MOST_COLUMNS = 3

# A part of a JSON document that is a row of a table.
Entry = Mapping[str, Any]
# A column, and its cell in the row of an entry.
Field = tuple[Column, Callable[[Any], Cell]]


def number(value: float | None, form: str = ".4g", interval: Sequence[float | None] | None = None) -> Cell:
    """Format a number with its interval; a missing number or an unbounded end is a dash."""
    if value is None:
        return Cell("–")
    shown = format_number(value, form)
    if interval is None:
        return Cell(shown)
    # A narrow column breaks before an interval, not within it.
    ends = (
        "–"
        if all(end is None for end in interval)
        else ",\N{NO-BREAK SPACE}".join(format_number(end, form) for end in interval)
    )
    return Cell(f"{shown} [{ends}]")


def text(value: Any) -> Cell:  # noqa: ANN401 - whatever JSON holds
    """Format a text, or a dash if there is none."""
    return Cell("–" if value in (None, "") else str(value))


def of(key: str, form: str = ".4g") -> Callable[[Entry], Cell]:
    """Return what formats the number under a key, with its interval where the entry has one."""
    return lambda entry: number(entry[key], form, entry.get(f"{key}_interval"))


def method(entry: Entry) -> Cell:
    """Return the name of an entry's method beside its line, with a mark where it was tuned on this very setting."""
    return Cell(entry["name"] + " *" * bool(entry.get("tuned")), method=entry["name"])


def method_of(key: str) -> Callable[[Entry], Cell]:
    """Return what names the method under a key."""
    return lambda entry: Cell(entry[key], method=entry[key])


def table(title: str, fields: Sequence[Field], entries: Iterable[Any], note: str = "") -> Table:
    """Return a table with a row for each entry."""
    rows = [[cell(entry) for _, cell in fields] for entry in entries]
    return Table(title, [column for column, _ in fields], rows, note)


def texts_table(title: str, rows: Sequence[Sequence[str]], note: str = "", *, has_methods: bool = False) -> Table:
    """Return a table of texts, the first row of which is the header; `has_methods` if each row begins with a method."""
    header, *cells = rows
    first = [Cell(row[0], method=row[0] if has_methods else "") for row in cells]
    shown = [[cell, *map(Cell, row[1:])] for cell, row in zip(first, cells, strict=True)]
    return Table(
        title, [Column(title, is_extra=index >= MOST_COLUMNS) for index, title in enumerate(header)], shown, note
    )
