"""CSV tables that one command writes and another reads."""

import csv
import math
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from headstart.output.errors import UserError, reason_of

# Cells of values that could not be computed, besides those that are not finite.
MISSING = ("", "na", "n/a", "none", "null", "-")
PERFORMANCE_COLUMNS = ("source", "target", "performance")
# What a reader must know of a performance, such as that the network predicts one class alone.
WARNING = "warning"
# The long layout of what `headstart stability` reads.
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
    if not math.isfinite(number) or "_" in text:
        raise ValueError(f"{name} is {text!r} and not a finite number")
    return number


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


def read_performances(path: str | None, sources: Collection[str], targets: Collection[str]) -> Performances:
    """Read known performances.

    Args:
        path: CSV file with the columns source, target and performance, perhaps warning; other columns and other pairs
            are ignored.
        sources: The source models.
        targets: The targets.

    Returns:
        Known performances; none without a file.

    Raises:
        UserError: The file cannot be read or has a wrong entry, a pair twice, or none of these pairs.
    """
    if path is None:
        return Performances({}, {})
    lines = read_csv("performances", Path(path))
    header = next(lines, (1, []))[1]
    if missing := [name for name in PERFORMANCE_COLUMNS if name not in header]:
        raise UserError(f"performances: no column {' or '.join(missing)} in the first line of {path!r}")

    known, warnings = dict[tuple[str, str], float](), dict[tuple[str, str], str]()
    for line, row in lines:
        try:
            require_fields(row, header)
            source, target, text = (row[header.index(name)].strip() for name in PERFORMANCE_COLUMNS)
            if (source, target) in known:
                raise ValueError(f"source {source!r} on target {target!r} once more")
            known[source, target] = finite_number(text, "performance")
        except ValueError as error:
            raise UserError(f"performances: line {line}: {error}") from error
        if WARNING in header and (warning := row[header.index(WARNING)]):
            warnings[source, target] = warning

    performances = {pair: value for pair, value in known.items() if pair[0] in sources and pair[1] in targets}
    if not performances:
        raise UserError(
            f"performances: {path!r} has no pair of the sources {', '.join(sources)} "
            f"and the targets {', '.join(targets)}"
        )
    return Performances(performances, {pair: text for pair, text in warnings.items() if pair in performances})
