"""Export features of pictures to a file for other programs, with the name, label and SHA-256 of each picture."""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headstart.datamodules.photos.photo_source import Photos
from headstart.datamodules.photos.pictures import Pictures
from headstart.output.errors import UserError, explain_write_errors
from headstart.output.files import output_file, replacing
from headstart.output.progress import Progress
from headstart.store.feature_table import StoredRows, in_hexadecimal

SUFFIXES = (".npz", ".safetensors", ".parquet")
# Bytes of features, and pictures, in a row group of Parquet. Bytes of names in the header of safetensors, which has
# 100 MB at most.
CHUNK_BYTES, CHUNK_PICTURES, MAX_NAME_BYTES = 2**26, 2**14, 9 * 10**7


def feature_file(export: str, overwrite: bool) -> Path:
    """Return the path of a file of features. Check before a long computation that the file can be written.

    Args:
        export: The file.
        overwrite: Whether an existing file may be replaced.

    Raises:
        UserError: Its suffix is unknown, it exists, it cannot be written, or the package of its format is missing.
    """
    path = output_file("export", export)
    if path.suffix not in SUFFIXES:
        raise UserError(f"export: {export!r} is given; endings are {', '.join(SUFFIXES)}")
    if path.exists() and not overwrite:
        raise UserError(f"export: {export!r} exists; choose another file, or replace it with --overwrite=true")
    if path.suffix == ".parquet":
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError as error:
            raise UserError("export: .parquet needs pyarrow; pip install 'headstart[datasets]'") from error
    return path


@dataclass(frozen=True)
class FeatureColumns:
    """Columns of a file of features, in the order of the pictures.

    Attributes:
        pictures: The pictures.
        root: Prefix that is removed from the names of pictures.
        stored: The features.
    """

    pictures: Pictures
    root: str
    stored: StoredRows

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes; empty if they are unknown, or if there is only one."""
        classes = self.pictures.classes if isinstance(self.pictures, Photos) else ()
        return tuple(map(_valid, classes)) if len(classes) > 1 else ()

    def name(self, index: int) -> str:
        """Return the name of one picture."""
        return _valid(self.pictures.names[index].removeprefix(self.root))

    def read(self, part: slice) -> dict[str, Any]:
        """Return the columns of some pictures: name, label, class, sha256, readable and features, by name."""
        indices = range(len(self.pictures))[part]
        labels, classes = [-1] * len(indices), ["", *self.classes]
        if isinstance(self.pictures, Photos) and self.classes:
            labels = self.pictures.labels[part].tolist()
        readable = np.array([index not in self.stored.remarks for index in indices])
        features = np.array(self.stored.rows[part])
        features[~readable] = np.nan
        return {
            "name": [self.name(index) for index in indices],
            "label": labels,
            "class": [classes[label + 1] for label in labels],
            "sha256": in_hexadecimal(self.pictures.packed_digests()[part]),
            "readable": readable,
            "features": features,
        }

    def write(self, path: Path, about: Mapping[str, Any]) -> None:
        """Write a file atomically.

        Args:
            path: The file.
            about: Metadata on the origin of the features, JSON values.

        Raises:
            UserError: The file cannot be written, or its format cannot hold the features or the names.
        """
        about = {**about, "classes": list(self.classes)}
        write = {".npz": self._write_npz, ".safetensors": self._write_safetensors, ".parquet": self._write_parquet}
        with explain_write_errors(f"export: {str(path)!r}", "choose another file"):
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as partial:
                write[path.suffix](partial, about)

    def _write_npz(self, path: Path, about: Mapping[str, Any]) -> None:
        content = io.BytesIO()
        arrays = {name: np.asarray(values) for name, values in self.read(slice(None)).items()}
        np.savez(content, allow_pickle=False, **arrays, about=np.array(json.dumps(about)))
        path.write_bytes(content.getbuffer())

    def _write_safetensors(self, path: Path, about: Mapping[str, Any]) -> None:
        from safetensors.numpy import save

        columns = self.read(slice(None))
        names_json, digests = json.dumps(columns["name"]), bytes.fromhex("".join(columns["sha256"]))
        if len(json.dumps(names_json)) > MAX_NAME_BYTES:
            raise UserError(f"export: {str(path)!r} cannot hold {len(columns['name']):,} names; choose .parquet")
        tensors = {
            "features": columns["features"],
            "label": np.array(columns["label"]),
            "sha256": np.frombuffer(digests, np.uint8).reshape(-1, 32),
            "readable": columns["readable"],
        }
        # safetensors does not fix the order of several keys; with a single key, the bytes are reproducible.
        path.write_bytes(save(tensors, {"about": json.dumps({**about, "names": columns["name"]})}))

    def _write_parquet(self, path: Path, about: Mapping[str, Any]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        width, kind = self.stored.rows.shape[1], pa.float32()
        types = {"name": pa.string(), "label": pa.int64(), "class": pa.string(), "sha256": pa.string()}
        types |= {"readable": pa.bool_(), "features": pa.list_(kind, width)}
        schema = pa.schema(list(types.items()), metadata={"about": json.dumps(about)})

        size = max(1, min(CHUNK_PICTURES, CHUNK_BYTES // max(1, self.stored.rows[:1].nbytes)))
        # Dictionary encoding does not help unique digests and features.
        # Errors of a Python file object have an `errno`.
        with (
            Progress("export", len(self.pictures), "pictures") as progress,
            path.open("wb") as file,
            pq.ParquetWriter(file, schema, use_dictionary=["class"]) as writer,
        ):
            for first in range(0, len(self.pictures), size):
                columns = self.read(slice(first, first + size))
                flat = pa.array(columns.pop("features").reshape(-1), kind)
                arrays = [pa.array(values, types[name]) for name, values in columns.items()]
                arrays.append(pa.FixedSizeListArray.from_arrays(flat, width))
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=len(arrays[0]))
                progress.advance(len(arrays[0]))


def _valid(text: str) -> str:
    """Escape bytes of a path that are not UTF-8, which no file of features can hold."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
