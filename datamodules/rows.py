"""Stored rows of pictures: those that a network computes, or prepared pictures and label maps.

Missing rows are computed. A row is found by the content of its picture, so that subsets, other validation sets and
other commands share it. Reading stored rows needs no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from headstart.datamodules.extraction_progress import ExtractionProgress
from headstart.datamodules.photos.pictures import Pictures
from headstart.datamodules.row_policy import NotStoredError, Policy, Resources
from headstart.datamodules.row_request import TABLES, RowRequest, explain_decoding_errors
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import NetworkSpec
from headstart.modules.networks.taps import Tap
from headstart.output.errors import UserError, reason_of
from headstart.store.row_store import RowStore, StoredRows

if TYPE_CHECKING:
    from headstart.datamodules.row_computation import ComputedRows, FrozenNetwork


def rows(
    network: NetworkSpec, taps: Sequence[Tap], pictures: Pictures, policy: Policy, resources: Resources
) -> StoredRows:
    """Return the rows that a network computes of pictures, running it only on pictures without a stored row.

    Args:
        network: The network, with its preprocessing.
        taps: Layers of the embeddings, which are concatenated; none for the inputs of the classifier.
        pictures: The pictures.
        policy: Settings that change the rows.
        resources: Cache, decoding processes and progress.

    Returns:
        Rows in float32, `[pictures, sum of widths]`. Their notes hold `widths`, the columns of each tap; and `weights`,
        the SHA-256 of the loaded weights. Unreadable pictures have remarks.

    Raises:
        StoreError: The cache folder cannot be read or written.
        UserError: The network cannot be loaded or run, or a decoding process was killed. Or a picture is not valid or
            cannot be read at the moment. Or an embedding is not finite or has another width than before.
        NotStoredError: Rows are missing and `resources` forbids to compute them.
        ValueError: Batch norm is to be folded, which leaves no layers, and there are taps.
    """
    if taps and policy.folded:
        raise ValueError("folded: a network whose batch norm is folded has no layers to take embeddings at")
    assert network.preprocessing is not None
    return find_embeddings(RowRequest(pictures, network.preprocessing, policy, network, taps), resources)


def find_embeddings(request: RowRequest, resources: Resources) -> StoredRows:
    """Find rows as `find`, and check the widths of embeddings without an output_dim."""
    stored = find(request, resources)
    request.check_widths(stored.notes["widths"], resources.cache)
    return stored


def activations(
    network: NetworkSpec, boundary: str, pictures: Pictures, policy: Policy, resources: Resources
) -> StoredRows:
    """Return the activations that enter a module of a network, running what comes before it where rows are missing.

    Args:
        network: The network, with its preprocessing.
        boundary: The module's path, before which the network can be cut.
        pictures: The pictures.
        policy: Settings that change the rows, with thumbnails.
        resources: Cache, decoding processes and progress.

    Returns:
        Rows in uint8, `[pictures, bytes]`, which `activation_rows.unpack` takes apart by their notes. Unreadable
        pictures have remarks.

    Raises:
        StoreError: The cache folder cannot be read or written.
        UserError: As `rows`, or the network cannot be cut there.
        NotStoredError: As `rows`.
    """
    assert network.preprocessing is not None
    return find(RowRequest(pictures, network.preprocessing, policy, network, boundary=boundary), resources)


def pixels(preprocessing: Preprocessing, pictures: Pictures, resources: Resources) -> StoredRows:
    """Return prepared pictures, decoding only those without a stored row.

    Args:
        preprocessing: Size and interpolation; the normalisation does not matter.
        pictures: The pictures. Unreadable ones are black and have remarks.
        resources: Cache, decoding processes and progress.

    Returns:
        Rows in uint8, `[pictures, 3, crop, crop]`.

    Raises:
        StoreError: The cache folder cannot be read or written.
        UserError: A picture cannot be read at the moment, or a decoding process was killed.
        NotStoredError: As `rows`.
    """
    return find(RowRequest(pictures, preprocessing, Policy(unreadable="remark")), resources)


def label_maps(preprocessing: Preprocessing, maps: Pictures, resources: Resources) -> StoredRows:
    """Return label maps prepared like the photos, whose pixels they label; otherwise as `pixels`.

    Args:
        preprocessing: How the photos are prepared; a map's pixels are those nearest.
        maps: The label maps, whose three channels all are the label.
        resources: Cache, decoding processes and progress.

    Returns:
        Labels in uint8, `[maps, crop, crop]`.
    """
    stored = pixels(replace(preprocessing, interpolation="nearest"), maps, resources)
    return replace(stored, rows=np.array(stored.rows[:, 0]))


def find(request: RowRequest, resources: Resources, copied: int | None = None) -> StoredRows:
    """Read rows from the store, after computing the missing ones.

    Args:
        request: The rows.
        resources: Cache, decoding processes and progress.
        copied: As for `RowStore.get`.

    Raises:
        StoreError: The cache folder cannot be read or written.
        UserError: The network cannot be loaded or run, or a decoding process was killed. Or a picture is not valid or
            cannot be read at the moment.
        NotStoredError: Rows are missing and `resources` forbids to compute them.
    """
    there = 0
    engines = resources.engines
    if engines is not None and not (engines.is_serial or resources.only_stored or resources.check):
        from headstart.datamodules.pieces import compute_missing

        there = sum(compute_missing({resources.title: request}, resources, engines).values())

    pictures, decoded = request.pictures, set[int]()
    store, digests = RowStore(resources.cache / TABLES), pictures.digests(resources.cache)
    progress = ExtractionProgress(resources.title, len(pictures), resources.before, resources.after)
    frozen: list[FrozenNetwork | None] = []

    def compute(missing: list[int]) -> ComputedRows:
        decoded.update(missing)
        if resources.only_stored:
            raise NotStoredError(f"{len(missing)} {resources.title} still have to pass through the network")
        if not frozen:
            frozen.append(request.load(resources.cache))
            ended.callback(request.end)
        progress.begin(len(missing))
        return request.compute(missing, resources, frozen[0], progress.report)

    with explain_decoding_errors(), progress, ExitStack() as ended:
        if resources.check is not None:
            resources.check.compare(store, request.key, digests, compute, resources.title)
            raise NotStoredError("the rows were checked, not read")
        stored = store.get(request.key, digests, compute, request.cut, progress.begin, copied)
        doubtful = [] if resources.only_stored else _find_doubtful(pictures, stored, decoded)
        if doubtful:
            store.forget(request.key, {digests[index] for index in doubtful})
            stored = store.get(request.key, digests, compute, request.cut, copied=copied)
    return replace(stored, computed=stored.computed + there)


def _find_doubtful(pictures: Pictures, stored: StoredRows, decoded: set[int]) -> list[int]:
    """Return the pictures that can be decoded though a stored remark says that they cannot.

    Args:
        pictures: The pictures.
        stored: Their rows.
        decoded: Pictures that were decoded just now.

    Raises:
        UserError: One of them cannot be read at the moment, which says nothing about it.
    """
    doubtful = []
    for index in sorted(stored.remarks.keys() - decoded):
        try:
            pictures.read(index)
            doubtful.append(index)
        except (OSError, MemoryError) as error:
            if getattr(error, "errno", 0) is not None:
                name = f"{pictures.kind} {pictures.names[index]!r}"
                raise UserError(f"{name} cannot be read at the moment ({reason_of(error)}); try again") from error
    return doubtful
