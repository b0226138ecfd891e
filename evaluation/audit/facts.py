"""Facts about source models that do not depend on any target: their size, their accuracy, their family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from headstart.evaluation.tables import finite_number, read_csv, require_fields
from headstart.output.errors import UserError

# Columns of numbers that rank the sources, with the names of the rankers.
NUMBERS = {"parameters": "parameters", "accuracy": "source_accuracy"}


@dataclass(frozen=True)
class Facts:
    """Facts about the sources of a table, in their order.

    Attributes:
        numbers: Numbers that rank them, higher first, by the name of the ranker.
        families: Family of each; none if families are unknown.
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
    kinds: dict[str, Callable[[str], Any]] = {name: partial(finite_number, name=name) for name in NUMBERS}
    kinds["family"] = _family
    columns = [name for name in kinds if name in header]
    if "source" not in header or not columns:
        listed = ", ".join(map(repr, header)) or "nothing"
        raise UserError(f"facts: a column source and one of {', '.join(kinds)} are needed; the first line has {listed}")

    facts: dict[str, dict[str, Any]] = {}
    for line, row in lines:
        try:
            require_fields(row, header)
            source = row[header.index("source")].strip()
            if source in facts:
                raise ValueError(f"source {source!r} once more")
            if source in sources:
                facts[source] = {name: kinds[name](row[header.index(name)].strip()) for name in columns}
        except ValueError as error:
            raise UserError(f"facts: line {line}: {error}") from error

    missing = [source for source in sources if source not in facts]
    if missing:
        raise UserError(f"facts: nothing of {', '.join(map(repr, missing))}; all sources of the table are needed")
    values = {name: [facts[source][name] for source in sources] for name in columns}
    families = values.pop("family", [])
    return Facts({NUMBERS[name]: numbers for name, numbers in values.items()}, families)


def _family(text: str) -> str:
    if not text:
        raise ValueError("family is empty")
    return text
