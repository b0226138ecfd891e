"""Photos in a table of the package datasets, and their labels."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from headstart.datamodules.photos.photo_source import Photos, number_classes
from headstart.datamodules.photos.picture_decoding import decode, read_digested
from headstart.output.errors import UserError
from headstart.output.files import digest_file


class HuggingFacePhotos(Photos):
    """Photos of splits, as their files' bytes.

    Args:
        dataset: The photos, a `datasets.Dataset`.
        image: Its column of photos.
        labels: Class of each photo, -1 without one.
        classes: Names of the classes.
        sizes: Number of photos of each split, one after the other, by its name.
        left_out: Why other files are left out, by name.
    """

    def __init__(
        self,
        dataset: Any,  # noqa: ANN401 - of a package without types
        image: str,
        labels: Sequence[int],
        classes: Sequence[str],
        sizes: Mapping[str, int],
        left_out: Mapping[str, str] = {},
    ) -> None:
        from datasets import Image as ImageColumn

        self.dataset = dataset.select_columns([image]).cast_column(image, ImageColumn(decode=False))
        self.image = image
        self.labels = np.array(labels, dtype=np.int64)
        self.names = [f"{split}/{number}" for split, size in sizes.items() for number in range(size)]
        self.classes = tuple(classes)
        self.left_out = left_out

    def read(self, index: int) -> Image.Image:
        """Decode one photo, whose bytes must be those that were digested, if any were."""
        content, path = self._cell(index)
        return decode(read_digested(path if content is None else content, self.known_digest(index)))

    def digest(self, index: int) -> str:
        """Digest the bytes of one photo."""
        content, path = self._cell(index)
        return digest_file(path) if content is None else hashlib.sha256(content).hexdigest()

    def part(self, indices: NDArray[np.int64]) -> HuggingFacePhotos:
        """Return some photos on their own: their data set is pickled as the paths of its files, which are mapped."""
        photos = copy.copy(self)
        photos.dataset = self.dataset.select(indices)
        photos.labels = self.labels[indices]
        photos.names = [self.names[index] for index in indices]
        photos._known = self.known[indices]
        return photos

    def _cell(self, index: int) -> tuple[bytes | None, str]:
        """Return the bytes of one photo, or the path of its file; a cell may be empty."""
        cell = self.dataset[index][self.image] or {"bytes": b"", "path": ""}
        return cell["bytes"], cell["path"]


def read_labels(dataset: Any, label: str) -> tuple[list[int], tuple[str, ...]]:  # noqa: ANN401 - of a package without types
    """Return the class of each photo, -1 without one, and the names of the classes.

    Args:
        dataset: The photos, a `datasets.Dataset`.
        label: The column of a ClassLabel, whose classes have an order, or of other values, which are sorted by name; or
            a value in a column, such as `json.label`.

    Raises:
        UserError: A value is neither a text nor a whole number.
    """
    column, *path = label.split(".")
    values = dataset.select_columns([column]).with_format(None)[:][column]
    for key in path:
        values = [value.get(key) if isinstance(value, dict) else None for value in values]
    feature = dataset.features[column]
    if not path and hasattr(feature, "names"):
        return [-1 if value is None else value for value in values], tuple(feature.names)

    texts = [value.decode(errors="replace") if isinstance(value, bytes) else value for value in values]
    wrong = next((value for value in texts if not isinstance(value, str | int | None)), None)
    if wrong is not None:
        raise UserError(
            f"label: column {label!r} has a value of type {type(wrong).__name__}; give texts or whole numbers"
        )
    return number_classes(["" if value is None else str(value).strip() for value in texts])
