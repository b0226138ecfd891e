"""CSV tables that one command writes and another reads."""

import csv
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from headstart.output.errors import UserError, reason_of

# Cells of values that could not be computed, besides those that are not finite.
MISSING = ("", "na", "n/a", "none", "null", "-")
PERFORMANCE_COLUMNS = ("source", "target", "performance")
# What a reader must know of a performance, such as that the network predicts one class alone.
WARNING = "warning"
# The plain layout of what `headstart stability` reads.
SCORE_COLUMNS = ("metric", "source", "target", "score", "performance", "seconds", WARNING)
# The same with the ends of the 95 % intervals of scores.
SOURCE_COLUMNS = (*SCORE_COLUMNS, "low", "high")


class Performances(NamedTuple):
    """Known performances.

    Attributes:
        values: The performances by source and target.
        warnings: Warnings of some of them.
    """

    values: dict[tuple[str, str], float]
    warnings: dict[tuple[str, str], str]


def finite_number(text: str, name: str) -> float:
    """Return the number in the column `name` of a CSV file; a ValueError if it is not a finite number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name} is {text!r} and not a finite number")
    return number


def read_value(text: str | None, name: str, codes: Collection[float] = ()) -> float:
    """Return the number in a cell, NaN if it is missing, 0 without a cell; a ValueError if it is no number.

    Args:
        text: The cell, None in a table without its column.
        name: The column, for messages.
        codes: Numbers that mean a missing one.
    """
    if text is None:
        return 0.0
    try:
        value = float(text)
    except ValueError:
        # Of a million cells few are no numbers.
        return math.nan if text.strip().lower() in MISSING else finite_number(text, name)
    if "_" in text:
        raise ValueError(f"{name} is {text!r} and not a finite number")
    return value if math.isfinite(value) and value not in codes else math.nan


def read_csv(option: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and fields of each line of a CSV file that is not empty; errors begin with the option."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            yield from ((reader.line_num, row) for row in reader if row)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(
            f"{option}: {str(path)!r} cannot be read ({reason_of(error)}); give a CSV file in UTF-8"
        ) from error


def require_fields(row: Sequence[str], header: Sequence[str]) -> None:
    """Raise a ValueError unless a line has a field for each column."""
    if len(row) != len(header):
        raise ValueError(f"{len(row)} fields where the first line has {len(header)}")


def read_performances(
    path: str | None,
    sources: Collection[str],
    targets: Collection[str],
    columns: Mapping[str, str] | None = None,
    where: Mapping[str, str | list[str]] | None = None,
    names: Mapping[str, str] | None = None,
    codes: Collection[float] | None = None,
) -> Performances:
    """Read known performances.

    Args:
        path: CSV file with the columns source, target and performance, perhaps warning; other columns and other pairs
            are ignored.
        sources: The source models.
        targets: The targets.
        columns: Names of these columns in the file, where they differ.
        where: Rows that count, by the texts that columns may have; all by default.
        names: Other names for sources and targets.
        codes: Numbers that mean a missing performance, which are NaN; by default a missing one is an error.

    Returns:
        Known performances; none without a file.

    Raises:
        UserError: The file cannot be read or has a wrong entry, a pair twice, or none of these pairs.
    """
    if path is None:
        return Performances({}, {})
    columns, names = columns or {}, names or {}
    unknown = [name for name in columns if name not in PERFORMANCE_COLUMNS]
    if unknown:
        raise UserError(
            f"performance_columns: {', '.join(map(repr, unknown))} given; there are {', '.join(PERFORMANCE_COLUMNS)}"
        )
    wanted = [columns.get(name, name) for name in PERFORMANCE_COLUMNS]
    lines = read_csv("performances", Path(path))
    header = next(lines, (1, []))[1]
    missing = [name for name in wanted if name not in header]
    missing += [name for name in where or {} if name not in header]
    if missing:
        raise UserError(f"performances: no column {' or '.join(missing)} in the first line of {path!r}")
    conditions = {
        header.index(name): [texts] if isinstance(texts, str) else texts for name, texts in (where or {}).items()
    }

    known, warnings = dict[tuple[str, str], float](), dict[tuple[str, str], str]()
    for line, row in lines:
        try:
            require_fields(row, header)
            if not all(row[column].strip() in texts for column, texts in conditions.items()):
                continue
            source, target, text = (row[header.index(name)].strip() for name in wanted)
            source, target = (names.get(name, name) for name in (source, target))
            value = finite_number(text, wanted[2]) if codes is None else read_value(text, wanted[2], codes)
        except ValueError as error:
            raise UserError(f"performances: line {line}: {error}") from error
        # Of a published file, whose rows are chosen, the same row may be there twice.
        if (source, target) in known and not (where and known[source, target] == value):
            raise UserError(f"performances: line {line}: source {source!r} on target {target!r} once more")
        known[source, target] = value
        if WARNING in header and (warning := row[header.index(WARNING)]):
            warnings[source, target] = warning

    performances = {pair: value for pair, value in known.items() if pair[0] in sources and pair[1] in targets}
    if not performances:
        raise UserError(
            f"performances: {path!r} has no pair of the sources {', '.join(sources)} "
            f"and the targets {', '.join(targets)}"
        )
    return Performances(performances, {pair: text for pair, text in warnings.items() if pair in performances})
