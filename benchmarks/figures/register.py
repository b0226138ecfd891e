"""The register of quoted figures: one YAML file for each page, which maps its numbers to commands and results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import jmespath
import yaml
from pydantic import BaseModel, ConfigDict

ROOT = Path(__file__).parents[2]
REGISTER = Path(__file__).parent
NUMBER = re.compile(r"[-−]?\d[\d,]*(?:\.\d+)?(?:e[-−]?\d+)?")
MEASURED = re.compile(r"[-−]?\d[\d,]*(?:\.\d+(?:e[-−]?\d+)?(?: ?%)?| ?%)")
# Numbers of these are no quoted figures: versions, addresses, code, names of sections.
SILENT = re.compile(
    r"^```.*?^```$|<!--.*?-->|`[^`]*`|\]\([^)]*\)|https?://\S+|^#.*?$|^\$\$.*?\$\$$|\$[^$\n]+\$"
    r"|Python 3\.\d+|Apache-2\.0",
    re.MULTILINE | re.DOTALL,
)


class Strict(BaseModel):
    """A part of the register; an unknown key raises an error."""

    model_config = ConfigDict(extra="forbid")


class Values(Strict):
    """Numbers that stand together on a page, and the JMESPath of each in the results.

    A row is a line of a table, found by its beginning, with paths for some of its cells. The first cell is 1. A text is
    a part of a sentence with a path for each of its numbers. A number that is not measured has null.
    """

    row: str | None = None
    under: str | None = None
    cells: dict[int, list[str | None]] = {}
    text: str | None = None
    values: list[str | None] = []
    scale: float = 1
    tolerance: float | str | None = None

    def spans(self, page: str) -> Iterator[tuple[int, int, list[str | None]]]:
        """Find where the numbers stand: from, to, and the paths of the numbers in between.

        Args:
            page: The page's text.

        Raises:
            ValueError: If the row, the text or a cell is not there, or is there twice.
        """
        start, end = _section(page, self.under)
        if self.text is not None:
            words = r"\s+".join(map(re.escape, self.text.split()))
            found = [(match.start(), match.end(), self.values) for match in re.finditer(words, page[start:end])]
        else:
            lines = re.finditer(rf"^{re.escape(self.row or '')}.*$", page[start:end], re.MULTILINE)
            found = [(match.start(), match.end(), []) for match in lines]
        if len(found) != 1:
            raise ValueError(f"{self.text or self.row!r} is on the page {len(found)} times, not once")

        begin, stop, paths = found[0]
        begin, stop = begin + start, stop + start
        if self.text is not None:
            yield begin, stop, paths
            return
        bars = [begin + match.start() for match in re.finditer(r"(?<!\\)\|", page[begin:stop])]
        for cell, paths in self.cells.items():
            if not 1 <= cell < len(bars):
                raise ValueError(f"{self.row!r} has {len(bars) - 1} cells, and no cell {cell}")
            yield bars[cell - 1], bars[cell], paths

    def differences(self, page: str, results: Any) -> list[str]:  # noqa: ANN401  (any JSON)
        """Compare the page's numbers with those of the results.

        Args:
            page: The page's text.
            results: The parsed file.

        Returns:
            A sentence for each number that differs by more than the tolerance, by default by rounding.
        """
        found = []
        for start, end, paths in self.spans(page):
            quoted = NUMBER.findall(page[start:end])
            if len(quoted) != len(paths):
                raise ValueError(f"{page[start:end].strip()!r} has {len(quoted)} numbers, but {len(paths)} paths")
            for text, path in zip(quoted, paths, strict=True):
                if path is None:
                    continue
                try:
                    value = jmespath.search(path, results)
                except jmespath.exceptions.JMESPathError as error:
                    found.append(f"{page[start:end].strip()}: {path} cannot be evaluated: {error}")
                    continue
                if value is None or abs(_number(text) - float(value) * self.scale) > self._allowed(text):
                    now = value if value is None else float(value) * self.scale
                    found.append(f"{page[start:end].strip()}: {text} is quoted, {path} is {now}")
        return found

    def _allowed(self, text: str) -> float:
        if isinstance(self.tolerance, str):
            return abs(_number(text)) * float(self.tolerance.rstrip("% ")) / 100
        mantissa, _, exponent = text.replace("−", "-").partition("e")
        rounding: float = 0.5001 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
        return max(rounding, self.tolerance or 0)


class Figure(Strict):
    """One command or several, the file that they write, and the numbers that are quoted from it."""

    command: str | list[str]
    minutes: float
    needs: Literal["shared", "gpu"] | None = None
    file: str
    values: list[Values]


class Page(Strict):
    """The register's entry for one page: figures with commands, and numbers that are not measured, by their meaning."""

    figures: list[Figure] = []
    constants: dict[str, list[str]] = {}

    def unexplained(self, page: str) -> list[str]:
        """Return numbers with a decimal point or a percent sign that neither a figure nor a constant explains.

        Args:
            page: The page's text.
        """
        silent = [match.span() for match in SILENT.finditer(page)]
        figures = [values for figure in self.figures for values in figure.values]
        known = [(start, end) for values in figures for start, end, _ in values.spans(page)]
        constants = {number for numbers in self.constants.values() for number in numbers}
        return [
            match.group()
            for match in MEASURED.finditer(page)
            if match.group() not in constants
            and not any(start <= match.start() < end for start, end in (*silent, *known))
        ]


def pages() -> dict[str, tuple[Path, Page]]:
    """Return the pages that may quote figures, by name, each with its part of the register."""
    files = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/tutorials").glob("*.md"))]
    found = {}
    for file in files:
        name = "index" if file == ROOT / "docs" / "README.md" else file.stem
        register = REGISTER / f"{name}.yaml"
        found[name] = (file, Page.model_validate(yaml.safe_load(register.read_text()) if register.exists() else {}))
    return found


def _section(page: str, heading: str | None) -> tuple[int, int]:
    if heading is None:
        return 0, len(page)
    title = re.search(rf"^(#+) {re.escape(heading)}$", page, re.MULTILINE)
    if title is None:
        raise ValueError(f"there is no heading {heading!r}")
    end = re.search(rf"^#{{1,{len(title[1])}}} ", page[title.end() :], re.MULTILINE)
    return title.end(), title.end() + end.start() if end else len(page)


def _number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))
