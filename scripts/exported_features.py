"""Features of pictures that are written as files: read from the store in chunks, with what is known of each picture."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headstart.datamodules.photos.folder_listing import count_kinds
from headstart.datamodules.photos.photo_source import Photos
from headstart.datamodules.photos.pictures import Pictures
from headstart.output.errors import UserError
from headstart.store.gathered_rows import GatheredRows

Dtype = Literal["float32", "float16"]
# Index of a picture, its name, index and name of its class, SHA-256 of its content, whether it can be decoded. Bytes of
# names that are no UTF-8 are escaped; classes that are unknown are None.
Entry = tuple[int, str, int | None, str | None, str, bool]
# Bytes of features that are in memory at once.
CHUNK = 2**26
# Pictures whose names are digested at once.
PART = 4096


@dataclass(frozen=True)
class ExportedFeatures:
    """Features of pictures, in the order of the pictures.

    Attributes:
        pictures: The pictures.
        root: Beginning of their names that is left out.
        digests: SHA-256 of each picture.
        rows: `[pictures, width or more]`, in float32; what follows the features is left out.
        width: Number of features.
        unreadable: Why pictures cannot be decoded, by index. Their features are NaN.
        dtype: Type in which the features are written.
    """

    pictures: Pictures
    root: str
    digests: Sequence[str]
    rows: NDArray[Any] | GatheredRows
    width: int
    unreadable: Mapping[int, str]
    dtype: Dtype

    def __len__(self) -> int:
        """Return the number of pictures."""
        return len(self.rows)

    @property
    def row_bytes(self) -> int:
        """Bytes of one picture's features."""
        return self.width * np.dtype(self.dtype).itemsize

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes; none where they are unknown, or there is one alone."""
        classes = self.pictures.classes if isinstance(self.pictures, Photos) else ()
        return tuple(map(_valid, classes)) if len(classes) > 1 else ()

    @property
    def left_out(self) -> dict[str, int]:
        """Number of files beside the pictures that are left out, by their kinds, such as endings."""
        if not isinstance(self.pictures, Photos):
            return {}
        return {_valid(kind): count for kind, count in count_kinds(self.pictures.left_out).items()}

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of names, labels and contents of the pictures in their order."""
        digest = hashlib.sha256("\0".join(self.classes).encode())
        entries = self.entries(range(len(self)))
        while some := [*islice(entries, PART)]:
            digest.update("".join(f"\0{name}\0{label}\0{sha256}" for _, name, label, _, sha256, _ in some).encode())
        return digest.hexdigest()

    def name(self, index: int) -> str:
        """Return the name of one picture."""
        return self._shown(self.pictures.names[index])

    def _shown(self, name: str) -> str:
        return _valid(name.removeprefix(self.root))

    def entries(self, part: range) -> Iterator[Entry]:
        """Iterate over what is known of some pictures."""
        labels: list[int | None] = [None] * len(part)
        if isinstance(self.pictures, Photos) and self.classes:
            found = self.pictures.labels[part.start : part.stop].tolist()
            labels = [None if label < 0 else label for label in found]
        classes: dict[int | None, str | None] = {None: None, **dict(enumerate(self.classes))}
        names = map(self._shown, self.pictures.names[part.start : part.stop])
        readable = [index not in self.unreadable for index in part]
        digests = self.digests[part.start : part.stop]
        return zip(part, names, labels, map(classes.__getitem__, labels), digests, readable, strict=True)

    def chunks(self, part: range) -> Iterator[tuple[range, NDArray[Any]]]:
        """Yield features chunk by chunk.

        Args:
            part: The pictures.

        Yields:
            Pictures, and their features `[pictures, width]`, little-endian.

        Raises:
            UserError: A feature is too large for float16.
        """
        count = max(1, CHUNK // (4 * self.rows.shape[1]))
        for start in range(part.start, part.stop, count):
            chunk = range(start, min(start + count, part.stop))
            features = np.array(self.rows[chunk.start : chunk.stop][:, : self.width], "<f4")
            if self.dtype == "float16":
                features = self._halved(chunk, features)
            features[[index - start for index in chunk if index in self.unreadable]] = np.nan
            yield chunk, features

    def _halved(self, chunk: range, features: NDArray[Any]) -> NDArray[Any]:
        with np.errstate(over="ignore"):
            halved = features.astype("<f2")
        lost = np.isinf(halved).any(axis=1)
        if lost.any():
            first = int(lost.argmax())
            raise UserError(
                f"dtype: float16 ends at 65504, and {self.name(chunk[first])} has a feature of "
                f"{np.abs(features[first]).max():g}; export float32"
            )
        return halved


def count_pictures(count: int) -> str:
    """Return a number of pictures as text."""
    return f"{count:,} picture{'s' * (count != 1)}"


def _valid(text: str) -> str:
    """Escape bytes of a path that are no UTF-8, which no file of features could hold."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
