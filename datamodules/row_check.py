"""The check that stored rows are those that the pictures give: a part of them is computed again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headstart.datamodules.row_request import ComputeSettings, RowRequest
from headstart.output.printable import say

# Relative differences that other processors or numbers of threads may make, by the precision of the network.
ROUNDING = {"float32": 1e-3, "bfloat16": 0.05}


@dataclass
class RowCheck:
    """Computes the first part of tables again, and removes parts with wrong rows.

    Attributes:
        checked: Rows that were computed again.
        wrong: Rows that differ from the computed ones.
        removed: Parts that were removed.
    """

    checked: int = 0
    wrong: int = 0
    removed: int = 0

    def compare(self, request: RowRequest, resources: ComputeSettings) -> None:
        """Compare stored rows of one table, and print how many are checked, wrong and removed.

        Args:
            request: The rows; those that are not stored are left out.
            resources: Cache and decoding processes.

        Raises:
            StoreError: The table cannot be read.
            UserError: The network cannot be loaded, or a picture cannot be read at the moment.
        """
        # These import torch, which listing a run does not need.
        from headstart.datamodules.row_computation import RowComputer, load

        table = request.table(resources.cache)
        digests = request.pictures.packed_digests(resources.cache)
        parts = table.find(digests).by_part()
        checked = wrong = removed = 0
        if parts:
            name = min(parts)
            stored = table.find(digests[parts[name]]).gather()
            again = RowComputer(request, resources.workers, load(request)).compute(parts[name].tolist())

            same = _are_same(np.asarray(stored.rows), again.rows, again.notes, request)
            same &= stored.notes == again.notes
            for row in stored.remarks.keys() | again.remarks.keys():
                same[row] &= stored.remarks.get(row) == again.remarks.get(row)

            checked, wrong = len(same), int((~same).sum())
            if wrong:
                table.remove(name)
                removed = 1

        say(
            f"{resources.title}: {sum(map(len, parts.values()))} of {len(digests)} rows are stored in {len(parts)} "
            f"parts; {checked} computed again, {wrong} wrong, {removed} parts removed"
        )
        self.checked, self.wrong, self.removed = self.checked + checked, self.wrong + wrong, self.removed + removed


def _are_same(
    stored: NDArray[np.generic], computed: NDArray[np.generic], notes: dict[str, object], request: RowRequest
) -> NDArray[np.bool_]:
    """Return whether rows are the same, `[rows]`; those of a network up to rounding."""
    if request.network is None:
        return np.asarray((stored == computed).reshape(len(stored), -1).all(1))
    values = [_values(rows, notes).reshape(len(rows), -1) for rows in (stored, computed)]
    difference, size = np.linalg.norm(values[0] - values[1], axis=1), np.linalg.norm(values[1], axis=1)
    return np.asarray(difference <= ROUNDING[request.settings.precision] * size)


def _values(rows: NDArray[np.generic], notes: dict[str, object]) -> NDArray[np.float64]:
    """Return the numbers in rows, of which activations are stored as bytes."""
    if rows.dtype != np.uint8:
        return rows.astype(np.float64)
    import torch

    from headstart.datamodules.row_computation import unpack

    return np.asarray(unpack(torch.from_numpy(np.array(rows)), notes).double().numpy())
