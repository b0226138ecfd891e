"""Tables of a report, printed and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

# Blanks beside a column.
PADDING = 3


def print_table(title: str, rows: Sequence[Sequence[str]]) -> None:
    """Print a table, without breaking cells, however narrow the terminal is that the output may not even go to.

    Args:
        title: Stands above it.
        rows: The header, and the rows.
    """
    console = Console()
    widths = [max(map(len, column)) + PADDING for column in zip(*rows, strict=True)]
    console.width = max(console.width, sum(widths) + PADDING)
    printed = Table(title=title, box=box.SIMPLE_HEAD)
    for place, column in enumerate(rows[0]):
        printed.add_column(column, justify="right" if place else "left", no_wrap=True)
    for row in rows[1:]:
        printed.add_row(*row)
    console.print(printed)


def print_lines(lines: Iterable[str]) -> None:
    """Print sentences, each on one line.

    Args:
        lines: The sentences.
    """
    for line in lines:
        print(line)


def markdown_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Write a table in Markdown.

    Args:
        rows: The header, and the rows.

    Returns:
        Its lines.
    """
    escaped = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    rule = " | ".join(["---"] + ["---:"] * (len(rows[0]) - 1))
    return [f"| {row} |" for row in (escaped[0], rule, *escaped[1:])]


def format_number(value: float | None, form: str = ".4g") -> str:
    """Write a number that may be missing.

    Args:
        value: The number.
        form: How it is written.

    Returns:
        A dash where it is missing.
    """
    # Added to 0, a negative 0 loses its sign.
    return "–" if value is None else format(value + 0.0, form)
