"""Stored rows of pictures: those that a network computes, or prepared pictures and label maps.

Missing rows are computed part by part: here, in workers or on a cluster. A row is found by the content of its picture,
so that subsets, other validation sets and other commands share it. Reading stored rows needs no torch.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headstart.datamodules.photos.pictures import Pictures
from headstart.datamodules.row_request import ComputeSettings, RowRequest
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.output.errors import UserError
from headstart.store.feature_table import COPIED, StoredRows, StoreError

# How often rows are looked for that were written and are not there.
ATTEMPTS = 3


def find(request: RowRequest, resources: ComputeSettings, copied: int = COPIED) -> StoredRows:
    """Read rows from their table, after computing the missing ones.

    Args:
        request: The rows.
        resources: Cache, decoding processes, engine and progress.
        copied: Bytes of rows up to which they are copied into memory.

    Returns:
        The rows. Those of a network are float32, `[pictures, sum of widths]`; their notes hold `widths`, the columns of
        each tap, and `weights`, the SHA-256 of the loaded weights. Activations are uint8, `[pictures, bytes]`, which
        `row_computation.unpack` takes apart. Prepared pictures are uint8, `[pictures, 3, crop, crop]`. Unreadable
        pictures have the row of a black one, and a remark.

    Raises:
        StoreError: The cache folder cannot be read or written.
        UserError: The network cannot be loaded or run, or a decoding process was killed. Or a picture cannot be read at
            the moment, or an embedding is not finite.
    """
    if not len(request.pictures):
        raise UserError(f"there are no {resources.title}; give one at least")
    table, digests = request.table(resources.cache), request.pictures.packed_digests(resources.cache)
    rows, computed = table.find(digests), 0
    for _ in range(ATTEMPTS):
        if not len(rows.missing):
            break
        # This imports torch, which stored rows do not need.
        from headstart.datamodules.row_tasks import compute_elsewhere, compute_here

        if resources.engines.is_serial:
            computed += compute_here(request, resources, digests, rows.missing)
        else:
            computed += compute_elsewhere({resources.title: request}, resources)[resources.title]
        rows = table.find(digests)

    if len(rows.missing):
        reason = "rows vanished after they were written; does something remove the cache?"
        raise StoreError(f"{str(table.folder)!r} cannot be used ({reason}); choose another folder")
    return replace(rows.gather(copied), computed=computed)


def label_maps(preprocessing: Preprocessing, maps: Pictures, resources: ComputeSettings) -> StoredRows:
    """Return label maps prepared like the photos, whose pixels they label; arguments and errors as for `find`.

    Args:
        preprocessing: How the photos are prepared; a map's pixels are those nearest.
        maps: The label maps, whose three channels all are the label.
        resources: Cache, decoding processes and progress.

    Returns:
        Labels in uint8, `[maps, crop, crop]`.
    """
    stored = find(RowRequest(maps, replace(preprocessing, interpolation="nearest")), resources)
    return replace(stored, rows=np.array(stored.rows[:, 0]))
