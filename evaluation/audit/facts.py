"""Facts about source models that know nothing of any target: their size, their accuracy, their family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headstart.evaluation.tables import finite_number, read_csv, require_fields
from headstart.output.errors import UserError

# Columns of numbers that rank the sources, with the names of the rankers.
NUMBERS = {"parameters": "parameters", "accuracy": "source_accuracy"}


@dataclass(frozen=True)
class Facts:
    """What is known of the sources of a table, in their order.

    Attributes:
        numbers: Numbers that rank them, higher first, by the name of the ranker.
        families: Family of each; none where families are not known.
    """

    numbers: dict[str, list[float]] = field(default_factory=dict)
    families: list[str] = field(default_factory=list)


def read_facts(path: Path | None, sources: Sequence[str]) -> Facts:
    """Read facts about the sources.

    Args:
        path: CSV file with the column `source`, and any of `parameters`, `accuracy` and `family`; other columns and
            other sources do not count.
        sources: Names of the sources.

    Returns:
        The facts; none without a file.

    Raises:
        UserError: The file cannot be read, has a wrong entry or a source twice, or does not have all sources.
    """
    if path is None:
        return Facts()
    lines = read_csv("facts", path)
    header = next(lines, (1, []))[1]
    kinds: dict[str, Callable[[str], Any]] = {name: _number(name) for name in NUMBERS} | {"family": _family}
    columns = [name for name in kinds if name in header]
    if "source" not in header or not columns:
        there = ", ".join(map(repr, header)) or "nothing"
        raise UserError(f"facts: a column source and one of {', '.join(kinds)} are needed; the first line has {there}")
    found: dict[str, dict[str, Any]] = {}
    for line, row in lines:
        try:
            require_fields(row, header)
            source = row[header.index("source")].strip()
            if source in found:
                raise ValueError(f"source {source!r} once more")
            if source in sources:
                found[source] = {name: kinds[name](row[header.index(name)].strip()) for name in columns}
        except ValueError as error:
            raise UserError(f"facts: line {line}: {error}") from error
    missing = [source for source in sources if source not in found]
    if missing:
        raise UserError(f"facts: nothing of {', '.join(map(repr, missing))}; all sources of the table are needed")
    numbers = {NUMBERS[name]: [found[source][name] for source in sources] for name in columns if name in NUMBERS}
    return Facts(numbers, [found[source]["family"] for source in sources] if "family" in columns else [])


def _number(name: str) -> Callable[[str], float]:
    return lambda text: finite_number(text, name)


def _family(text: str) -> str:
    if not text:
        raise ValueError("family is empty")
    return text
