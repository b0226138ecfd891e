"""Tables of texts: printed within the width of the terminal, and as Markdown."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from headstart.output.markup import escape_latex, escape_markdown
from headstart.output.printable import encodable, print_lines, printable

# Blanks between two columns, and the share of the width up to which names are not broken.
GAP = 2
UNBROKEN = 0.4
# Numbers, relative and absolute, that differ by less differ by rounding errors.
ROUNDING = 1e-10

Cells = Sequence[Sequence[str]]
# What a row shows.
Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Table:
    """A table, which the terminal, Markdown and LaTeX show alike.

    Attributes:
        title: Its title.
        rows: The header, and the rows: a name, then numbers.
        essential: Headers of the columns that stay where the terminal is narrow; by default all do.
        about: Sentence below the title.
        notes: Sentences below the table.
    """

    title: str
    rows: Cells
    essential: tuple[str, ...] = ()
    about: str = ""
    notes: Sequence[str] = ()


def table_rows(entries: Iterable[Entry], columns: Mapping[str, Callable[[Entry], str]]) -> Cells:
    """Return a table with a row for every entry, from what its columns show, by their headers."""
    return [[*columns], *([show(entry) for show in columns.values()] for entry in entries)]


def print_tables(tables: Sequence[Table]) -> None:
    """Print tables as `print_table` does, without columns for which there is no room.

    Tables with the same essential columns lack the same ones: the last ones, as many as the widest table needs.
    """
    tables = [replace(table, rows=_encodable(table.rows)) for table in tables]
    kinds = {essential: _without_room(essential, tables) for essential in {table.essential for table in tables}}
    for table in tables:
        left_out = [header for header in table.rows[0] if header in kinds[table.essential]]
        caption = f"no room for: {', '.join(left_out)}" * bool(left_out)
        print_table("\n".join(filter(None, (table.title, table.about))), _without(table.rows, left_out), caption)
        print_lines(table.notes)


def _without_room(essential: tuple[str, ...], tables: Iterable[Table]) -> list[str]:
    """Return the headers that tables with these essential columns must lack to fit the terminal."""
    same = [table.rows for table in tables if table.essential == essential]
    optional = [each for each in dict.fromkeys(header for rows in same for header in rows[0]) if each not in essential]
    left_out, width = list[str](), Console().width

    def fits(rows: Cells) -> bool:
        return len(_parts(_least_widths(_without(rows, left_out)), width)) == 1

    while essential and optional and not all(map(fits, same)):
        left_out.append(optional.pop())
    return left_out


def _without(rows: Cells, left_out: Sequence[str]) -> Cells:
    kept = [column for column, header in enumerate(rows[0]) if header not in left_out]
    return [[row[column] for column in kept] for row in rows]


def _encodable(rows: Cells) -> list[list[str]]:
    return [[encodable(printable(cell)) for cell in row] for row in rows]


def print_table(title: str, rows: Cells, caption: str = "") -> None:
    """Print a table that fits the terminal, or 80 columns if there is no terminal, and break no number.

    If it is too wide, headers are broken. Columns that still do not fit follow below, beside the names again. Names are
    broken if they take more than two fifths of the width. Texts are printed as they are, without markup, and control
    characters as Python's escapes.

    Args:
        title: Title above it, of one line or more.
        rows: The header, and the rows: a name, then numbers.
        caption: Text below it.
    """
    console = Console(highlight=False)
    rows = _encodable(rows)
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    names = widths[0]
    if sum(widths) + GAP * (len(widths) - 1) > console.width:
        widths = _least_widths(rows)

    console.print(Text(f"\n{encodable(_shown(title))}", style="bold"))
    for part, columns in enumerate(_parts(widths, console.width)):
        room = console.width - sum(widths[column] + GAP for column in columns)
        table = RichTable(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
        first = min(names, max(room, 1))
        table.add_column(Text(rows[0][0]), width=first, overflow="fold")
        for column in columns:
            # The box itself has one space between columns.
            table.add_column(Text(rows[0][column]), justify="right", width=widths[column] + GAP - 1, overflow="fold")
        for row in rows[1:]:
            table.add_row(Text(row[0]), *(Text(row[column]) for column in columns))

        if part:
            console.print()
        console.print(table)
    if caption:
        console.print(Text(encodable(printable(caption))))


def _least_widths(rows: Cells) -> list[int]:
    """Return the width of each column whose header is broken between its words."""
    longest_words = [max(map(cell_len, header.split()), default=0) for header in rows[0]]
    bodies = zip(*([""] * len(rows[0]), *rows[1:]), strict=True)
    return [max(word, *map(cell_len, body)) for word, body in zip(longest_words, bodies, strict=True)]


def _shown(title: str) -> str:
    return "\n".join(map(printable, title.split("\n")))


def _parts(widths: Sequence[int], width: int) -> list[list[int]]:
    """Distribute the columns except the first over as many parts as their widths need."""
    least = min(widths[0], int(UNBROKEN * width))
    parts: list[list[int]] = [[]]
    for column in range(1, len(widths)):
        if parts[-1] and least + sum(widths[each] + GAP for each in (*parts[-1], column)) > width:
            parts.append([])
        parts[-1].append(column)
    return parts


def markdown_report(title: str, about: str, remarks: Iterable[str], tables: Iterable[tuple[str, str, Cells]]) -> str:
    """Return a report in Markdown.

    Args:
        title: Its title.
        about: The paragraph below the title, escaped.
        remarks: Sentences of the list below that.
        tables: Title, caption and rows of each table, escaped; a caption may be empty.
    """
    lines = [f"# {title}", "", about, "", *(f"- {escape_markdown(line)}" for line in remarks)]
    for heading, caption, rows in tables:
        lines += ["", f"## {heading}", "", *([caption, ""] if caption else []), *markdown_table(rows)]
    return "\n".join(lines) + "\n"


def markdown_table(rows: Cells) -> list[str]:
    """Return the lines of a table in Markdown; the first row is the header."""
    escaped = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    rule = " | ".join(["---"] + ["---:"] * (len(rows[0]) - 1))
    return [f"| {row} |" for row in (escaped[0], rule, *escaped[1:])]


def markdown_tables(tables: Iterable[Table]) -> str:
    """Return tables in Markdown, each below a heading, with escaped texts."""
    lines: list[str] = []
    for table in tables:
        lines += [f"## {escape_markdown(table.title)}", "", *[f"{escape_markdown(table.about)}\n"] * bool(table.about)]
        lines += [*markdown_table([[escape_markdown(cell) for cell in row] for row in table.rows]), ""]
        lines += [f"- {escape_markdown(note)}" for note in table.notes] + [""] * bool(table.notes)
    return "\n".join(lines)


def latex_tables(tables: Iterable[Table]) -> str:
    """Return tables in LaTeX with the rules of booktabs, shrunk to their column, and their notes as comments."""
    lines = ["% \\usepackage{booktabs, adjustbox}"]
    for table in tables:
        header, *rows = [f"{' & '.join(map(escape_latex, row))} \\\\" for row in table.rows]
        lines += [
            *(f"% {printable(note)}" for note in table.notes),
            "\\begin{table}",
            f"\\caption{{{escape_latex('. '.join(filter(None, (table.title, table.about))))}}}",
            "\\begin{adjustbox}{max width=\\linewidth}",
            f"\\begin{{tabular}}{{l{'r' * (len(table.rows[0]) - 1)}}}",
            *["\\toprule", header, "\\midrule", *rows, "\\bottomrule"],
            *["\\end{tabular}", "\\end{adjustbox}", "\\end{table}", ""],
        ]
    return "\n".join(lines)


def format_estimate(value: float | None, ends: Sequence[float | None] | None, form: str) -> str:
    """Format a value with the ends of its interval in brackets, if it has one.

    Args:
        value: The value; None is shown as a dash.
        ends: The ends of the interval; None, or a first end of None, for no interval.
        form: Format of all numbers.
    """
    between = "" if ends is None or ends[0] is None else f" [{', '.join(format_number(end, form) for end in ends)}]"
    return f"{format_number(value, form)}{between}"


def format_number(value: float | None, form: str = ".4g") -> str:
    """Format a number, or a dash if it is missing."""
    # The z removes the sign of a negative 0.
    return "–" if value is None else format(value + 0.0, f"z{form}")


def format_with_error(value: float | None, error: float | None) -> str:
    """Format a number with its error after ±: the error has two digits, and the number as many decimals.

    A number or an error that is within rounding errors of 0 is 0.

    Args:
        value: The number; None where it is missing.
        error: Half the width of its interval; None where it is not known.
    """
    if value is None:
        return format_number(value)
    value = 0.0 if abs(value) <= ROUNDING else value
    if error is None:
        return format_number(value)
    if error <= ROUNDING * max(abs(value), 1):
        return f"{format_number(value)} ± 0"

    # Rounded first: 0.0999 is 0.10.
    decimals = 1 - math.floor(math.log10(float(f"{error:.1e}")))
    form = f".{max(decimals, 0)}f"
    return " ± ".join(format_number(round(number, decimals), form) for number in (value, error))


def print_scores(document: dict[str, Any]) -> None:
    """Print the scores of the content of a `results.json`."""
    criterion, protocol = document["criterion"], document["protocol"]
    measure = criterion["measure"].replace("_", " ")
    title = (
        f"Samples to criterion: {criterion['threshold']:.0%} validation {measure} at {criterion['consecutive']} "
        f"consecutive evaluations\n{protocol['dataset']}, {protocol['backbone']} ({Path(protocol['weights']).name}), "
        f"{protocol['orderings']} orderings, batch size {protocol['batch_size']}"
    )
    caption = (
        f"restricted mean: mean of min(samples, {document['restricted_at']}); improvement: of the restricted mean "
        "over the baseline's, 95 % interval; p: sign-flip permutation test, Holm-adjusted; –: not reached in half of "
        "the orderings"
    )

    methods, comparisons = document["methods"], document["comparisons"]
    accuracies = {name: _accuracies(scores) for name, scores in methods.items()}
    # Of numbers of samples that all orderings of all methods have, the last.
    common = [at for at in next(iter(accuracies.values())) if all(at in each for each in accuracies.values())][-1:]
    columns: dict[str, Callable[[str], str]] = {
        "method": str,
        "reached": lambda name: f"{methods[name]['reached']}/{len(methods[name]['samples_to_criterion'])}",
        "median": lambda name: format_number(methods[name]["median"], "g"),
        "restricted mean": lambda name: f"{methods[name]['restricted_mean']:.1f}",
        "improvement [95%]": lambda name: _improvement(comparisons[name]) if name in comparisons else "",
        "p": lambda name: f"{comparisons[name]['p_value_holm']:.2g}" if name in comparisons else "",
        **{f"{measure} at {at}": lambda name: f"{accuracies[name][common[0]]:.1%}" for at in common},
    }
    warnings = [f"WARNING: {warning}" for warning in document.get("warnings", [])]
    essential = ("method", "reached", "median", "improvement [95%]")
    print_tables([Table(title, table_rows(methods, columns), essential, notes=[caption, *warnings])])


def _accuracies(scores: dict[str, Any]) -> dict[str, float]:
    """Return the mean accuracies of a method by numbers of samples, if all orderings have one."""
    return {number: sum(v) / len(v) for number, v in scores["accuracy_at"].items() if None not in v}


def _improvement(comparison: dict[str, Any]) -> str:
    low, high = comparison["ci95"]
    interval = "" if low is None else f" [{low:.0f}, {high:.0f}]"
    return f"{comparison['relative_improvement_percent']:.0f}%{interval}"
