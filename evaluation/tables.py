"""The CSV tables that one command writes and another reads."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from output.errors import UserError

PERFORMANCE_COLUMNS = ("source", "target", "performance")
# The plain layout of what `evaluate.py stability` reads.
SCORE_COLUMNS = ("metric", "source", "target", "score", "performance", "seconds")


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write a table as CSV.

    Args:
        columns: Names of the columns.
        rows: Its rows; None is an empty cell.

    Returns:
        The text, with numbers at full precision.
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    return text.getvalue()


def finite_number(text: str | None, name: str) -> float:
    """Read a number of a CSV file.

    Args:
        text: What stands there.
        name: Name of the column.

    Returns:
        The number.

    Raises:
        ValueError: It is none, or not finite.
    """
    try:
        number = float(text or "")
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name} is {text or ''!r} and not a finite number")
    return number


def read_performances(path: Path, sources: Collection[str], targets: Collection[str]) -> dict[tuple[str, str], float]:
    """Read known performances.

    Args:
        path: CSV file with the columns source, target and performance; other columns and other pairs do not count.
        sources: The source models.
        targets: The targets.

    Returns:
        Performances by source and target, of those pairs that are known.

    Raises:
        UserError: The file cannot be read or has a wrong entry, a pair twice, or none of these pairs.
    """
    known: dict[tuple[str, str], float] = {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            missing = [name for name in PERFORMANCE_COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise UserError(f"performances: no column {' or '.join(missing)} in the first line of {str(path)!r}")
            for row in reader:
                pair = row["source"], row["target"]
                if pair in known:
                    raise UserError(
                        f"performances: line {reader.line_num}: source {pair[0]!r} on target {pair[1]!r} once more"
                    )
                known[pair] = _number(row["performance"], reader.line_num)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"performances: {str(path)!r} cannot be read ({error}); give a CSV file in UTF-8") from error
    found = {pair: value for pair, value in known.items() if pair[0] in sources and pair[1] in targets}
    if not found:
        raise UserError(
            f"performances: {str(path)!r} has no pair of the sources {', '.join(sources)} "
            f"and the targets {', '.join(targets)}"
        )
    return found


def _number(text: str | None, line: int) -> float:
    try:
        return finite_number(text, "performance")
    except ValueError as error:
        raise UserError(f"performances: line {line}: {error}") from error
