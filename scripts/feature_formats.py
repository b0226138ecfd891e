"""The formats in which features are written, row by row as they are read: NumPy, safetensors and Parquet."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from headstart.output.errors import UserError
from headstart.output.markup import escape_cell
from headstart.output.progress import Progress
from headstart.scripts.exported_features import ExportedFeatures

Format = Literal["npy", "safetensors", "parquet"]
Writer = Callable[[Path], object]
INDEX = "index.csv"
INDEX_COLUMNS = ("index", "name", "label", "class", "sha256", "readable")
# Files of features of every format, as patterns.
PATTERNS = ("features.npy", "features-*-of-*.safetensors", "features.parquet", INDEX)
# Bytes of one safetensors file.
SHARD = 10**9
SAFETENSORS_TYPES = {"float32": "F32", "float16": "F16"}


def require_format(chosen: Format) -> None:
    """Raise a UserError if the package that writes a format is missing."""
    if chosen == "parquet":
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError as error:
            raise UserError("format: parquet needs pyarrow; pip install 'headstart[datasets]'") from error


def feature_files(exported: ExportedFeatures, chosen: Format) -> dict[str, range]:
    """Return the files of features, and which pictures each holds."""
    if chosen != "safetensors":
        return {f"features.{chosen}": range(len(exported))}
    count = max(1, SHARD // exported.row_bytes)
    starts = range(0, len(exported), count)
    return {
        f"features-{number:05}-of-{len(starts):05}.safetensors": range(start, min(start + count, len(exported)))
        for number, start in enumerate(starts)
    }


def feature_writers(
    exported: ExportedFeatures, chosen: Format, about: Mapping[str, str], progress: Progress
) -> dict[str, Writer]:
    """Return the functions that write the features, by file name.

    Args:
        exported: The features.
        chosen: The format.
        about: Texts that safetensors and Parquet files hold beside the features.
        progress: Advanced by every picture.
    """
    files = feature_files(exported, chosen)
    if chosen == "parquet":
        return {name: partial(_write_parquet, exported, about, progress) for name in files}
    header = _npy_header if chosen == "npy" else _safetensors_header
    writers: dict[str, Writer] = {
        name: partial(_write_rows, exported, part, header(exported, part, about), progress)
        for name, part in files.items()
    }
    return {**writers, INDEX: partial(_write_index, exported)}


def _write_rows(exported: ExportedFeatures, part: range, header: bytes, progress: Progress, path: Path) -> None:
    """Write a header and then rows: what both formats are; a file mapped into memory would crash on a full disk."""
    with path.open("wb") as file:
        file.write(header)
        for chunk, features in exported.chunks(part):
            file.write(features.data)
            progress.advance(len(chunk))


def _npy_header(exported: ExportedFeatures, part: range, about: Mapping[str, str]) -> bytes:
    header = io.BytesIO()
    described = np.lib.format.dtype_to_descr(np.dtype(exported.dtype).newbyteorder("<"))
    shape = len(part), exported.width
    np.lib.format.write_array_header_1_0(header, {"descr": described, "fortran_order": False, "shape": shape})
    return header.getvalue()


def _safetensors_header(exported: ExportedFeatures, part: range, about: Mapping[str, str]) -> bytes:
    """Return a header by https://huggingface.co/docs/safetensors; the library writes tensors in memory alone."""
    tensor = {
        "dtype": SAFETENSORS_TYPES[exported.dtype],
        "shape": [len(part), exported.width],
        "data_offsets": [0, len(part) * exported.row_bytes],
    }
    text = json.dumps({"__metadata__": {**about, "first": str(part.start)}, "features": tensor}).encode()
    # Blanks at its end align the rows.
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _write_index(exported: ExportedFeatures, path: Path) -> None:
    """Write what is known of every picture; names that a spreadsheet would take for formulas are escaped."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(INDEX_COLUMNS)
        writer.writerows(_cells(exported))


def _cells(exported: ExportedFeatures) -> Iterator[tuple[Any, ...]]:
    classes = {name: escape_cell(name) for name in (*exported.classes, None)}
    for row, name, label, class_name, digest, readable in exported.entries(range(len(exported))):
        yield row, escape_cell(name), label, classes[class_name], digest, readable


def _write_parquet(exported: ExportedFeatures, about: Mapping[str, str], progress: Progress, path: Path) -> None:
    """Write a table whose row groups are the chunks."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kind: Any = pa.float32() if exported.dtype == "float32" else pa.float16()
    types = (pa.int64(), pa.string(), pa.int64(), pa.string(), pa.string(), pa.bool_())
    columns = [pa.field(name, each) for name, each in zip(INDEX_COLUMNS, types, strict=True)]
    schema = pa.schema([*columns, pa.field("features", pa.list_(kind, exported.width))], metadata=dict(about))

    # Dictionaries of digests or features would be as large as the columns themselves.
    # A file of Python, whose errors are those of the system.
    with path.open("wb") as file, pq.ParquetWriter(file, schema, use_dictionary=["class"]) as writer:
        for chunk, features in exported.chunks(range(len(exported))):
            known = zip(*exported.entries(chunk), strict=True)
            arrays = [pa.array(values, each) for values, each in zip(known, types, strict=True)]
            flat = pa.array(features.reshape(-1), kind)
            writer.write_table(
                pa.Table.from_arrays([*arrays, pa.FixedSizeListArray.from_arrays(flat, exported.width)], schema=schema),
                row_group_size=len(chunk),
            )
            progress.advance(len(chunk))
