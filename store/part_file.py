"""The file of a part of a table: safetensors with picture digests and rows, its table, and a checksum of every byte."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# In place of the checksum, when the file is digested.
BLANK = "0" * 64
SUFFIX = ".safetensors"
# Longest header that is believed: remarks on 4,096 pictures and more.
MOST_HEADER = 2**24
READ_AT_ONCE = 2**24
TYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "U8": np.dtype("u1")}
NAMES = {dtype: name for name, dtype in TYPES.items()}


class DamagedError(ValueError):
    """A part differs from what was written."""


class Part:
    """A part that was written.

    Args:
        path: Its file.

    Attributes:
        digests: SHA-256 of the pictures, `[pictures]`, 32 bytes each.
        notes: Notes on all rows, JSON values.
        remarks: Why pictures are unreadable, by their positions.
        form: What the parts of one table have in common: notes, type and shape.
        rows: Memory-mapped array `[pictures, ...]` once it is verified; changes do not reach the disk.

    Raises:
        DamagedError: It is no such file.
        OSError: It cannot be read.
    """

    rows: NDArray[Any]

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            try:
                size = int.from_bytes(file.read(8), "little")
                if size > MOST_HEADER:
                    raise DamagedError("its header is too long")
                self._header = file.read(size)
                header = json.loads(self._header)
                about, rows, count = header["__metadata__"], header["rows"], header["digests"]["shape"][0]
                self._dtype, self._start = TYPES[rows["dtype"]], 8 + size
                self._shape: list[int] = rows["shape"]
                self.notes, self.sha256 = json.loads(about["notes"]), str(about["sha256"])
                self.remarks = {int(place): str(remark) for place, remark in json.loads(about["remarks"]).items()}
                self.digests = np.frombuffer(file.read(32 * count), "S32", count)
            except OSError:
                raise
            # A damaged file raises errors of many unrelated kinds.
            except Exception as error:
                raise DamagedError(str(error) or type(error).__name__) from error
        if path.name != name_of(self.digests):
            raise DamagedError("its digests are not those of its name")
        # Parts of the same pictures have the same name in all tables.
        if about.get("table") != path.parent.name:
            raise DamagedError("it belongs to another table")
        self.form = [self.notes, rows["dtype"], self._shape[1:]]

    def verify(self) -> None:
        """Compare the checksum of the whole file, and map the rows of that same file, whatever takes its name later.

        Raises:
            DamagedError: It differs, also because another file, or none, has its name by now.
            OSError: The file cannot be read.
        """
        digest = hashlib.sha256(len(self._header).to_bytes(8, "little"))
        digest.update(self._header.replace(self.sha256.encode(), BLANK.encode(), 1))
        try:
            with self.path.open("rb") as file:
                if file.read(self._start) != len(self._header).to_bytes(8, "little") + self._header:
                    raise DamagedError("its header differs")
                while content := file.read(READ_AT_ONCE):
                    digest.update(content)
                if digest.hexdigest() != self.sha256:
                    raise DamagedError("its checksum differs")
                start, shape = self._start + 32 * len(self.digests), tuple(self._shape)
                self.rows = np.memmap(file, self._dtype, mode="c", offset=start, shape=shape)
        except FileNotFoundError as error:
            raise DamagedError("it was removed") from error


def write_part(
    path: Path,
    table: str,
    digests: NDArray[np.bytes_],
    rows: NDArray[Any],
    notes: Mapping[str, Any],
    remarks: Mapping[int, str],
) -> None:
    """Write a part.

    Args:
        path: Its file.
        table: Name of the table's folder: the digest of what the rows depend on.
        digests: SHA-256 of the pictures, `[pictures]`, 32 bytes each.
        rows: Their rows, float32 or uint8 `[pictures, ...]`.
        notes: Notes on all rows, JSON values.
        remarks: Why pictures are unreadable, by their positions.
    """
    rows = np.ascontiguousarray(rows)
    data: tuple[bytes | memoryview, ...] = (digests.tobytes(), rows.data.cast("B"))
    middle = 32 * len(digests)
    blank = _header(
        # The checksum comes first, so that it is the first text of its kind in the header.
        {
            "sha256": BLANK,
            "table": table,
            "notes": json.dumps(dict(notes)),
            "remarks": json.dumps(dict(remarks)),
        },
        digests={"dtype": "U8", "shape": [len(digests), 32], "data_offsets": [0, middle]},
        rows={
            "dtype": NAMES[rows.dtype],
            "shape": list(rows.shape),
            "data_offsets": [middle, middle + rows.nbytes],
        },
    )
    digest = hashlib.sha256(blank)
    for content in data:
        digest.update(content)
    # The file has no buffer, which would be written once more when it is closed, even on a full disk.
    with path.open("wb", buffering=0) as file:
        for content in (blank.replace(BLANK.encode(), digest.hexdigest().encode(), 1), *data):
            left = memoryview(content)
            while left:
                left = left[file.write(left) :]


def _header(about: Mapping[str, str], **tensors: Mapping[str, Any]) -> bytes:
    """Return a header by https://huggingface.co/docs/safetensors; the library writes tensors from one memory alone."""
    text = json.dumps({"__metadata__": about, **tensors}).encode()
    # Blanks at its end align the rows.
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def name_of(digests: NDArray[np.bytes_]) -> str:
    """Return the name of the part of some pictures: the SHA-256 of their digests is in it."""
    return f"part-{hashlib.sha256(digests.tobytes()).hexdigest()}{SUFFIX}"
