"""The content of a Parquet file with photos: its columns, and the digest and the label of every row."""

import hashlib
import io
import json
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from headstart.datamodules.photos.file_indexes import Arrays
from headstart.datamodules.photos.locations import RemoteFile, is_remote, size_of
from headstart.output.errors import UserError, reason_of

# Field of the bytes in photos as Hugging Face's library writes them.
BYTES = "bytes"
# Column of the labels where no type tells it.
LABEL = "label"
UNLABELLED = -1


class _Columns(NamedTuple):
    """Columns of a file, and the names of the classes that their type lists."""

    image: str
    label: str | None
    classes: list[str] | None


def index_parquet(location: str, image: str | None, label: str | None) -> Arrays:
    """Index the rows of a Parquet file, one row group after the other.

    Args:
        location: The file.
        image: Column of the photos' bytes; None for the only one.
        label: Column of the labels; None for the only one of type ClassLabel, else `label`, if there is one.

    Returns:
        `groups` is the row group of each row, and `rows` its index in there. `sizes` are in bytes, and `sha256` is
        `[rows, 32]`. `labels` are indices of `classes`, -1 without a label. `column` is that of the photos, and
        `classes` is JSON. `listed` says whether the type of the label's column lists them.

    Raises:
        UserError: The package pyarrow or a column is missing, or the file is no Parquet file or damaged.
        OSError: It cannot be read.
    """
    file = open_parquet(location)
    columns = _columns(file, location, image, label)
    if not file.metadata.num_rows:
        raise UserError(f"the Parquet file {location} holds no row; leave it out")
    classes = dict(zip(columns.classes or [], range(len(columns.classes or [])), strict=True))

    sha256, lengths, labels = bytearray(), array("q"), []
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
    for group, size in enumerate(sizes):
        for content in read_group(file, location, group, columns.image):
            sha256 += hashlib.sha256(content).digest()
            lengths.append(len(content))
        cells = [None] * size if columns.label is None else _cells(file, location, group, columns.label)
        labels += [_number(cell, classes, columns, location) for cell in cells]
    return {
        "groups": np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
        "rows": np.concatenate([np.arange(size, dtype=np.int32) for size in sizes]),
        "sizes": np.frombuffer(lengths, np.int64),
        "sha256": np.frombuffer(sha256, np.uint8).reshape(-1, 32),
        "labels": np.array(labels, dtype=np.int64),
        "column": np.array(columns.image),
        "classes": np.array(json.dumps([*classes])),
        "listed": np.array(columns.classes is not None),
    }


def _number(cell: Any, classes: dict[str, int], columns: _Columns, location: str) -> int:  # noqa: ANN401 - any value
    """Return the index of the class in a cell, -1 where there is none."""
    if cell is None or cell == "":
        return UNLABELLED
    if isinstance(cell, bool) or not isinstance(cell, str | int):
        raise UserError(
            f"label: column {columns.label!r} of the Parquet file {location} holds {type(cell).__name__}; name one of "
            "texts or whole numbers"
        )
    if columns.classes is not None:
        return int(cell) if 0 <= int(cell) < len(classes) else UNLABELLED
    return classes.setdefault(str(cell), len(classes))


def open_parquet(location: str) -> Any:  # noqa: ANN401 - of a package without types
    """Open a file as a `pyarrow.parquet.ParquetFile`; errors as for `index_parquet`."""
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError as error:
        raise UserError(f"Parquet files need a package ({error}); pip install 'headstart[datasets]'") from error
    with explain_damage(location):
        if not is_remote(location):
            return parquet.ParquetFile(location)
        return parquet.ParquetFile(io.BufferedReader(RemoteFile(location, size_of(location))))


@contextmanager
def explain_damage(location: str) -> Iterator[None]:
    """Raise an error of a damaged file as a UserError."""
    try:
        yield
    except (OSError, ValueError) as error:
        # Arrow's own errors about damaged files are ValueErrors, and OSErrors without the system's number.
        if isinstance(error, UserError) or getattr(error, "errno", None) is not None:
            raise
        raise UserError(
            f"the Parquet file {location} is damaged or no Parquet file ({reason_of(error)}); fetch or write it again"
        ) from error


def read_group(file: Any, location: str, group: int, column: str) -> list[bytes]:  # noqa: ANN401 - see above
    """Read the photos of one row group.

    Args:
        file: The opened file.
        location: Where it is.
        group: Index of the row group.
        column: Column of the photos, of bytes or of Hugging Face's type.

    Returns:
        Their bytes, none for an empty cell.

    Raises:
        UserError: The group is damaged, or names files in place of bytes.
        OSError: It cannot be read.
    """
    contents = []
    for cell in _cells(file, location, group, column):
        if isinstance(cell, dict) and cell[BYTES] is None and cell.get("path"):
            raise UserError(
                f"the Parquet file {location} names files such as {cell['path']!r} in place of their bytes; write the "
                "bytes into it, as Dataset.to_parquet does"
            )
        contents.append((cell[BYTES] if isinstance(cell, dict) else cell) or b"")
    return contents


def _cells(file: Any, location: str, group: int, column: str) -> list[Any]:  # noqa: ANN401 - see above
    with explain_damage(location):
        cells: list[Any] = file.read_row_group(group, columns=[column]).column(0).to_pylist()
    return cells


def _columns(file: Any, location: str, image: str | None, label: str | None) -> _Columns:  # noqa: ANN401 - see above
    """Find the columns of the photos and of the labels, or check those that were named."""
    schema = file.schema_arrow
    # Features as Hugging Face's library notes them; it writes no file without. Those of lists are lists.
    features = json.loads((schema.metadata or {}).get(b"huggingface", b"{}")).get("info", {}).get("features", {})
    noted = {name: feature for name, feature in features.items() if isinstance(feature, dict)}
    types = {field.name: field.type for field in schema}
    holding = [name for name, kind in types.items() if _holds_bytes(kind)]
    images = [name for name in holding if noted.get(name, {}).get("_type") == "Image"] or holding
    fitting = [name for name in holding if name == image] if image else images
    listed = ", ".join(f"{name} ({kind})" for name, kind in types.items())
    if len(fitting) != 1:
        problem = f"no column {image!r} of bytes" if image else f"{len(images) or 'no'} columns of bytes"
        raise UserError(f"image: the Parquet file {location} has {problem}; its columns are {listed}")

    if label is not None and label not in types:
        raise UserError(f"label: the Parquet file {location} has no column {label!r}; its columns are {listed}")
    lists = {name: noted[name]["names"] for name in types if noted.get(name, {}).get("_type") == "ClassLabel"}
    if label is None:
        label = next(iter(lists)) if len(lists) == 1 else LABEL if LABEL in types else None
    return _Columns(fitting[0], label, lists.get(label or ""))


def _holds_bytes(kind: Any) -> bool:  # noqa: ANN401 - see above
    """Whether a column holds bytes, or fields of which one does, as Hugging Face's library writes photos."""
    types = import_module("pyarrow").types
    if types.is_struct(kind):
        return any(field.name == BYTES and _holds_bytes(field.type) for field in kind)
    return bool(types.is_binary(kind) or types.is_large_binary(kind))
