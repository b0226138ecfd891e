"""Files of a leaderboard, and its tables in the terminal."""

from collections.abc import Mapping
from typing import Any

from headstart.evaluation.leaderboard.frames import score_frame
from headstart.evaluation.leaderboard.tables import tables_of, warnings_of
from headstart.output.markup import escape_cell, escape_markdown
from headstart.output.printable import print_lines, printable
from headstart.output.results_folder import ResultsFolder
from headstart.output.tables import latex_tables, markdown_tables, print_tables

NAME = "leaderboard"
FILES = [f"{NAME}.{kind}" for kind in ("json", "csv", "md", "tex")]


def write_leaderboard(results: ResultsFolder, document: dict[str, Any], texts: Mapping[str, str] | None = None) -> None:
    """Write the files of a leaderboard.

    Args:
        results: Their folder.
        document: The content of `leaderboard.json`.
        texts: Contents of further files, by their names.
    """
    tables, warnings, left_out = [*tables_of(document)], warnings_of(document), _left_out(document)
    listed = "\n".join(f"- {escape_markdown(each)}" for each in [*warnings, *left_out, *document["remarks"]])
    comments = "".join(f"% {printable(each)}\n" for each in warnings)
    files = {
        f"{NAME}.md": "\n\n".join(filter(None, ("# Leaderboard", listed, markdown_tables(tables)))),
        f"{NAME}.tex": comments + latex_tables(tables),
        **(texts or {}),
    }
    results.write(document, {NAME: leaderboard_table(document)}, files)


def print_leaderboard(document: dict[str, Any]) -> None:
    """Print the tables; those of settings only if they are few."""
    print_lines(warnings_of(document))
    print_tables([*tables_of(document, in_terminal=True)])
    print_lines([*_left_out(document), *document["remarks"]])


def leaderboard_table(document: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Return the columns of the CSV file, and its rows: one for every method of every setting.

    Args:
        document: The content of `leaderboard.json`.
    """
    frame = score_frame(document)
    rows = [[escape_cell(cell) for cell in line] for line in frame.itertuples(index=False, name=None)]
    return [*frame.columns], rows


def _left_out(document: Mapping[str, Any]) -> list[str]:
    return [f"left out: {each['setting']} ({each['reason']})" for each in document["left_out"]]
