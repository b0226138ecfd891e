"""The register of published tables: their addresses, options, files and expected numbers."""

import ast
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass

from headstart.contract.tables.csv_tables import PERFORMANCE_COLUMNS
from headstart.datamodules.photos.download import download, fetch_once
from headstart.evaluation.published import reshape
from headstart.output.errors import UserError, reason_of
from headstart.output.files import write_text
from headstart.output.markup import csv_text
from headstart.store.cache import cache_folder

REGISTER = Path(__file__).with_name("register.yaml")
# Subfolder of the cache folder for downloads.
FOLDER = "published"
# File name of a table after its conversion to the layout that the audit reads.
CONVERTED = "table.csv"


@dataclass(frozen=True)
class PublishedFile:
    """A file of a published table.

    Attributes:
        name: Its file name.
        url: Its address.
        sha256: SHA-256 of the version in the register, with line feeds as line endings, hexadecimal. For a file of
            Python code, it is that of the CSV file made from it. Empty if the publisher adds rows to the file.
        variable: Name of the dictionary that holds the table, in a file of Python code: performances by target and
            source.
    """

    name: str
    url: str
    sha256: str = ""
    variable: str = ""


@dataclass(frozen=True)
class PublishedTable:
    """A published table.

    Attributes:
        title: What the table contains.
        citation: Authors, title, venue and year.
        files: Its files; only `reshape` reads the second one.
        expected: Expected results. `sources`, `targets` and `cells` are the numbers of compared sources, of targets and
            of performances. All others are mean weighted Kendall correlations over targets: of each metric, and of the
            mean rank of a source on the other targets (`mean_rank`).
        options: Options with which `headstart audit` reads it.
        reshape: The function of `reshape.py` that converts its files, if the audit does not read their layout.
    """

    title: str
    citation: str
    files: list[PublishedFile]
    expected: dict[str, int | float]
    options: dict[str, Any] = Field(default_factory=dict)
    reshape: Literal["one_column_per_target", "linear_and_knn", "scores_and_records"] | None = None

    @property
    def file(self) -> PublishedFile:
        """The first file."""
        return self.files[0]


TABLES = TypeAdapter(dict[str, PublishedTable]).validate_python(yaml.safe_load(REGISTER.read_text(encoding="utf-8")))


def find_files(table: PublishedTable, local: Path | None) -> dict[str, Path]:
    """Return the files of a table by their names: local copies, or downloads that are kept in the cache folder.

    Args:
        table: The table.
        local: Local copy: its only file, or a folder with files of these names in it or below.

    Raises:
        UserError: A file is missing, or cannot be fetched.
    """
    if local is None:
        return {file.name: _fetch(file) for file in table.files}
    if local.is_dir():
        return {file.name: _find(local, file.name) for file in table.files}
    if len(table.files) > 1 or not local.is_file():
        names = ", ".join(file.name for file in table.files)
        raise UserError(f"file: {str(local)!r} is not a copy of the table; give a folder with {names}")
    return {table.file.name: local}


def _find(folder: Path, name: str) -> Path:
    paths = sorted(folder.rglob(name))
    if not paths:
        raise UserError(f"file: {str(folder)!r} has no {name}; copy it there, or leave the option out to download it")
    return paths[0]


def _fetch(file: PublishedFile) -> Path:
    """Download a file, unless the cache folder has it."""
    suffix = ".py" if file.variable else ".csv"
    folder = cache_folder() / FOLDER / Path(file.name).stem

    def fill(partial: Path) -> Path:
        # No SHA-256 is passed: another version is not an error, and `version_warning` warns of it.
        download(file.url, partial / f"table{suffix}", None, "give a local copy by --file")
        return partial

    fetch_once(folder, fill)
    return folder / f"table{suffix}"


def version_warning(file: PublishedFile, path: Path) -> str:
    """Return a warning if a file is not the version in the register. Empty if it is, or if no SHA-256 is registered."""
    # Line endings differ between copies.
    digest = hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()
    if not file.sha256 or digest == file.sha256:
        return ""
    return f"WARNING: {str(path)!r} is not the version of {file.name} in the register (its SHA-256 is {digest})."


def readable_table(table: PublishedTable, paths: Mapping[str, Path], folder: Path) -> tuple[Path, str]:
    """Return a file that the audit can read, converted if necessary, and a note on its rows.

    Python code is parsed, not run.

    Args:
        table: The table.
        paths: Its files by their names.
        folder: Folder for a converted file.

    Raises:
        UserError: A file of Python code does not assign the dictionary `variable`.
    """
    path, note = paths[table.file.name], ""
    if path.suffix == ".py":
        values = _read_dictionary(table.file, path)
        pairs = [(source, target) for target in sorted(values) for source in sorted(values[target])]
        text = csv_text(PERFORMANCE_COLUMNS, [[source, target, values[target][source]] for source, target in pairs])
    elif table.reshape:
        rows, note = getattr(reshape, table.reshape)(*(paths[file.name] for file in table.files))
        text = rows.to_csv(index=False, lineterminator="\n")
    else:
        return path, note
    write_text(folder / CONVERTED, text, overwrite=True)
    return folder / CONVERTED, note


def _read_dictionary(file: PublishedFile, path: Path) -> Mapping[str, Mapping[str, float]]:
    try:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == file.variable for target in node.targets
            ):
                values = ast.literal_eval(node.value)
                return {str(target): dict(row) for target, row in values.items()}
    except (OSError, SyntaxError, ValueError, AttributeError) as error:
        raise UserError(f"file: {str(path)!r} cannot be read ({reason_of(error)}); give the released file") from error
    raise UserError(f"file: {str(path)!r} assigns no {file.variable!r}; give the released file, or a CSV file")
