"""The check that stored rows are those that the photos give: a share of them is computed again."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headstart.output.printable import say
from headstart.store.row_store import RowStore

if TYPE_CHECKING:
    from headstart.datamodules.row_computation import ComputedRows

# Relative differences that other processors or numbers of threads may make, by the precision of the network.
ROUNDING = {"float32": 1e-3, "bfloat16": 0.05}


@dataclass
class RowCheck:
    """Compares stored rows with rows that are computed again, and removes the wrong ones.

    Attributes:
        share: Share of the stored rows that is computed again, one row at least.
        seed: Seed of their choice.
        checked: Rows that were computed again.
        wrong: Rows that differ from the computed ones, and damaged ones.
        removed: Rows that were removed; a wrong one goes with all that were stored with it.
    """

    share: float
    seed: int
    checked: int = 0
    wrong: int = 0
    removed: int = 0

    def compare(
        self,
        store: RowStore,
        key: Mapping[str, Any],
        names: Sequence[str],
        compute: Callable[[list[int]], ComputedRows],
        title: str,
    ) -> None:
        """Compare stored rows of one table, and print how many are checked, wrong and removed.

        Args:
            store: The store.
            key: The table's key.
            names: Names of the rows; those that are not stored are left out.
            compute: Computes rows, from their indices in `names`.
            title: Source of the rows.

        Raises:
            StoreError: The store cannot be read or written.
            UserError: A picture cannot be read at the moment.
        """
        first = {name: index for index, name in reversed(list(enumerate(names)))}
        intact, damaged = store.look_up(key, set(names))
        known = sorted(first[name] for name in intact)
        chosen = np.random.default_rng(self.seed).permutation(known)[: math.ceil(self.share * len(known))]
        indices = sorted(chosen.tolist())

        wrong = self._find_wrong(store, key, [names[index] for index in indices], compute, indices) if indices else []
        removed = store.forget(key, {names[index] for index in wrong}) + len(damaged)
        say(
            f"{title}: {len(known) + len(damaged)} of {len(first)} rows are stored; {len(indices)} computed again, "
            f"{len(wrong)} wrong, {len(damaged)} damaged, {removed} removed"
        )
        self.checked += len(indices) + len(damaged)
        self.wrong += len(wrong) + len(damaged)
        self.removed += removed

    def _find_wrong(
        self,
        store: RowStore,
        key: Mapping[str, Any],
        names: list[str],
        compute: Callable[[list[int]], ComputedRows],
        indices: list[int],
    ) -> list[int]:
        stored = store.get(key, names, lambda missing: compute([indices[index] for index in missing]))
        source = compute(indices)
        rows = np.concatenate(list(source))
        if stored.notes != source.notes:
            return indices
        same = _are_same(np.asarray(stored.rows), rows, source)
        return [
            index
            for row, index in enumerate(indices)
            if not same[row] or stored.remarks.get(row) != source.remarks.get(row)
        ]


def _are_same(stored: NDArray[Any], computed: NDArray[Any], source: ComputedRows) -> NDArray[np.bool_]:
    """Whether rows are the same, `[rows]`; those of a network up to rounding."""
    if source.frozen is None:
        return np.asarray((stored == computed).reshape(len(stored), -1).all(1))
    values = [_values(rows, source) for rows in (stored, computed)]
    difference, size = np.linalg.norm(values[0] - values[1], axis=1), np.linalg.norm(values[1], axis=1)
    return np.asarray(difference <= ROUNDING[source.policy.precision] * size)


def _values(rows: NDArray[Any], source: ComputedRows) -> NDArray[np.float64]:
    """Return the numbers in rows, of which activations are stored as bytes."""
    if rows.dtype != np.uint8:
        return rows.astype(np.float64)
    import torch

    from headstart.datamodules.activation_rows import unpack

    parts = unpack(torch.from_numpy(rows.copy()), source.notes)
    return np.concatenate([part.double().flatten(1).numpy() for part in parts], 1)
