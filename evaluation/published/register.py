"""The register of published tables: where each is, how it is read, and which figures are expected of it."""

from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass

REGISTER = Path(__file__).with_name("register.yaml")


@dataclass(frozen=True)
class PublishedFile:
    """A file of a published table.

    Attributes:
        name: Its name here.
        url: Its address.
        sha256: SHA-256 of the version in the register, with line feeds as line ends, hexadecimal. For a file of Python
            code, it is that of the CSV file made of it. Empty for a file that grows.
        variable: Name of the dictionary that holds the table, in a file of Python code: performances by target and
            source.
    """

    name: str
    url: str
    sha256: str = ""
    variable: str = ""


@dataclass(frozen=True)
class Expected:
    """Figures of a table as the register knows it.

    Attributes:
        sources: Number of sources that are compared.
        targets: Number of targets.
        cells: Number of performances.
        mean_rank: Mean over targets of the weighted Kendall of the mean rank on the other targets.
        metrics: The same of the metrics.
    """

    sources: int
    targets: int
    cells: int
    mean_rank: float
    metrics: dict[str, float] = Field(default_factory=dict)


@dataclass(frozen=True)
class PublishedTable:
    """A published table.

    Attributes:
        title: Its content in words.
        citation: Authors, title, venue and year.
        files: Its files; the second one is for `reshape`.
        expected: Figures that are expected of it.
        options: Options with which `headstart audit` reads it.
        reshape: The function of `reshape.py` that makes its rows of its files, where the audit does not read its
            layout.
    """

    title: str
    citation: str
    files: list[PublishedFile]
    expected: Expected
    options: dict[str, Any] = Field(default_factory=dict)
    reshape: Literal["one_column_a_target", "linear_and_knn", "scores_and_records"] | None = None

    @property
    def file(self) -> PublishedFile:
        """The first file."""
        return self.files[0]


TABLES = TypeAdapter(dict[str, PublishedTable]).validate_python(yaml.safe_load(REGISTER.read_text(encoding="utf-8")))
