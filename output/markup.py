"""Tables as CSV, and texts that are escaped for CSV, Markdown and LaTeX."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "–": "--",
    "±": r"\ensuremath{\pm}",
    "†": r"\dag{}",
    **{character: f"\\{character}" for character in "{}$&#_%"},
}


def escape_markdown(text: str) -> str:
    """Escape a text for Markdown, except `|`, which `markdown_table` escapes; line breaks become spaces."""
    return re.sub(r"([\\`*_{}\[\]<>#&$~!])", r"\\\1", " ".join(text.split()))


def escape_names(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Escape the texts of a table for Markdown: the header, and the first column, which has names."""
    return [list(map(escape_markdown, rows[0])), *([escape_markdown(name), *cells] for name, *cells in rows[1:])]


def escape_latex(text: str) -> str:
    """Escape a text for LaTeX; line breaks become spaces.

    A `[` or `*` at its start gets braces, or LaTeX would read it as an option of the line break before it.
    """
    escaped = "".join(LATEX.get(character, character) for character in " ".join(text.split()))
    return f"{{{escaped}}}" if escaped.startswith(("[", "*")) else escaped


def escape_cell(value: Any) -> Any:  # noqa: ANN401 - of a table
    """Escape a text that a spreadsheet would interpret as a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table as CSV, with numbers at full precision and None as an empty cell."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    return text.getvalue()
