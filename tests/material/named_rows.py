"""Rows that follow from their names, and a table of a store that checks them."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.store.row_store import RowStore, StoredRows

KEY = {"model": "resnet50", "size": (3, 4)}
NOTES = {"weights": "a1"}


def row_of(name: str, width: int = 5, dtype: str = "float32") -> NDArray[Any]:
    """Return the row of a name."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])
    return np.random.default_rng(seed).integers(0, 200, width).astype(dtype)


class NamedRows:
    """Rows of some names, in chunks of two.

    Args:
        names: The names.
        notes: What it notes, once the first rows are computed.
        pause: Called before every chunk but the first.
        form: Width and type of the rows.
    """

    def __init__(
        self, names: Sequence[str], notes: dict[str, Any], pause: Callable[[], None] = lambda: None, **form: Any
    ) -> None:
        self.names, self.noted, self.pause, self.form = names, notes, pause, form
        self.notes: dict[str, Any] = {}
        self.remarks: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        for first in range(0, len(self.names), 2):
            if first:
                self.pause()
            rows = np.stack([row_of(name, **self.form) for name in self.names[first : first + 2]])
            self.notes.update(self.noted)
            # Capitals stand for what there is something to be said about.
            numbered = enumerate(self.names[first : first + 2], first)
            self.remarks.update({index: f"about {name}" for index, name in numbered if name.isupper()})
            yield rows


class Table:
    """One table of a store, whose rows are checked whenever they are asked for.

    Args:
        folder: Folder of the store.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []

    def get(self, names: str, computed: str, key: dict[str, Any] = KEY, **source: Any) -> StoredRows:
        """Ask for rows named by letters, and check which were computed, in the calls that slashes part."""
        self.asked = []
        source = {"notes": NOTES, **source}

        def compute(indices: list[int]) -> NamedRows:
            requested = [names[index] for index in indices]
            self.asked.append("".join(requested))
            return NamedRows(requested, **source)

        result = RowStore(self.folder).get(key, list(names), compute)
        form = {name: source[name] for name in ("width", "dtype") if name in source}
        assert "/".join(self.asked) == computed
        assert result.computed == len(computed.replace("/", ""))
        assert np.array_equal(result.rows, np.stack([row_of(name, **form) for name in names]))
        assert result.rows.dtype == form.get("dtype", "float32")
        assert result.notes == source["notes"]
        assert result.remarks == {index: f"about {name}" for index, name in enumerate(names) if name.isupper()}
        return result

    def segments(self) -> list[Path]:
        return sorted(self.folder.glob("*/*.journal"))
