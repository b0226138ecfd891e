"""Files of tables: their columns, how they are read as texts, and known performances."""

import csv
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from headstart.output.errors import UserError, reason_of

PERFORMANCE_COLUMNS = ("source", "target", "performance")
# What a reader must know of a performance, such as that the network predicts one class alone.
WARNING = "warning"
# The long layout of what `headstart stability` reads.
SCORE_COLUMNS = ("metric", "source", "target", "score", "performance", "seconds", WARNING)
# The same with the ends of the 95 % intervals of scores.
SOURCE_COLUMNS = (*SCORE_COLUMNS, "low", "high")
FORMATS = "a CSV file in UTF-8, or a Parquet file with the ending .parquet"
# Mistakes of a kind that a message has.
MOST_NAMED = 3


class Performances(NamedTuple):
    """Known performances.

    Attributes:
        values: The performances by source and target.
        warnings: Warnings of some of them.
    """

    values: dict[tuple[str, str], float]
    warnings: dict[tuple[str, str], str]


def number_of(text: str) -> float:
    """Return the number that a text is; infinity where it is none."""
    try:
        return math.inf if "_" in text else float(text)
    except ValueError:
        return math.inf


def refuse(mistakes: Mapping[str, Sequence[str]], hint: str = "", option: str = "table") -> None:
    """Raise a UserError of one line with the first mistakes of all kinds that have any."""
    parts = []
    for kind, entries in mistakes.items():
        more = f"; and {len(entries) - MOST_NAMED} more" if len(entries) > MOST_NAMED else ""
        if entries:
            parts.append(f"{len(entries)} {kind}: {'; '.join(entries[:MOST_NAMED])}{more}")
    if parts:
        raise UserError(f"{option}: {'; '.join(parts)}{hint}")


def read_frame(option: str, path: Path) -> pd.DataFrame:
    """Read a file as texts without spaces around them. The index numbers its rows, of which the header is the first.

    Args:
        option: The option that names the file, for messages.
        path: CSV or Parquet file.

    Raises:
        UserError: The file cannot be read, has a column twice, or rows of another length.
    """
    try:
        if path.suffix == ".parquet":
            return _read_parquet(path)
        # pandas would fill rows that are too short.
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            lines = [(reader.line_num, [text.strip() for text in row]) for row in reader if row]
    except ImportError as error:
        raise UserError(f"{option}: .parquet needs pyarrow; pip install 'headstart[datasets]'") from error
    except FileNotFoundError as error:
        raise UserError(f"{option}: there is no file {str(path)!r}; give {FORMATS}") from error
    except (OSError, ValueError, csv.Error) as error:
        raise UserError(f"{option}: {str(path)!r} cannot be read ({reason_of(error)}); give {FORMATS}") from error

    header = lines[0][1] if lines else []
    twice = sorted({name for name in header if name and header.count(name) > 1})
    if twice:
        raise UserError(f"{option}: {str(path)!r} has the column {twice[0]!r} twice; rename one")
    torn = [f"row {line} has {len(row)} fields" for line, row in lines if len(row) != len(header)]
    refuse({f"rows without the {len(header)} fields of the first": torn}, option=option)
    return pd.DataFrame([row for _, row in lines[1:]], [line for line, _ in lines[1:]], header, dtype=object)


def _read_parquet(path: Path) -> pd.DataFrame:
    frame = pd.read_parquet(path)
    frame = frame.reset_index() if any(frame.index.names) else frame
    texts = frame.astype(object).where(frame.notna(), "").map(lambda value: str(value).strip()).rename(columns=str)
    return texts.set_axis(range(2, len(frame) + 2), axis=0)


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
    performances = Performances({}, {})
    if path is None:
        return performances
    frame = read_frame("performances", Path(path))
    if missing := [name for name in PERFORMANCE_COLUMNS if name not in frame.columns]:
        raise UserError(f"performances: no column {' or '.join(missing)} in the first line of {path!r}")

    wrong = []
    for row, cells in frame[frame["source"].isin(sources) & frame["target"].isin(targets)].iterrows():
        source, target, text = (str(cells[name]) for name in PERFORMANCE_COLUMNS)
        number = number_of(text)
        if (source, target) in performances.values:
            wrong.append(f"row {row}, source {source!r} on target {target!r} once more")
        elif math.isfinite(number):
            performances.values[source, target] = number
        else:
            wrong.append(f"row {row}, performance is {text!r} and not a finite number")
        if cells.get(WARNING):
            performances.warnings[source, target] = str(cells[WARNING])

    refuse({"wrong entries": wrong}, option="performances")
    if not performances.values:
        raise UserError(
            f"performances: {path!r} has no pair of the sources {', '.join(sources)} "
            f"and the targets {', '.join(targets)}"
        )
    return performances
