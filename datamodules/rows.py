"""The one way from a named network and pictures to stored rows, and from pictures alone to prepared pixels.

Rows are found by the content of each picture, so that subsets, other validation sets and other commands share them.
What is found needs no torch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from headstart.datamodules.photos.photo_source import Pictures
from headstart.datamodules.row_policy import Means, NotStoredError, Policy
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import NetworkSpec
from headstart.modules.networks.taps import Tap
from headstart.output.errors import UserError
from headstart.store.row_store import Compute, RowStore, StoredRows

if TYPE_CHECKING:
    from headstart.datamodules.row_computation import ComputedRows

TABLES = "rows"
# How torch's loader says, at any moment, that one of its processes was killed or found no shared memory.
DECODING_ENDED = re.compile(r"DataLoader worker .*(is killed by|exited unexpectedly)|unable to .* shared memory")


def rows(network: NetworkSpec, taps: Sequence[Tap], pictures: Pictures, policy: Policy, means: Means) -> StoredRows:
    """Give what a network makes of pictures, running it on those only that have no row yet.

    Args:
        network: The network, with its preprocessing.
        taps: Where embeddings are taken, which are put side by side; none for what enters the classifier.
        pictures: The pictures.
        policy: In what way they are computed.
        means: By what means.

    Returns:
        Rows in float32, `[pictures, sum of widths]`. Their notes tell `widths`, columns of each tap; and `weights`,
        the SHA-256 of the loaded weights. Unreadable pictures are remarked upon.

    Raises:
        StoreError: The cache folder cannot be read or written.
        UserError: The network cannot be loaded or run, a picture is refused or cannot be read at the moment, an
            embedding is not finite, or a process that decodes was killed.
        ValueError: Batch norm is to be folded, which leaves no layers, and there are taps.
    """
    if taps and policy.folded:
        raise ValueError("folded: a network whose batch norm is folded has no layers to take embeddings at")
    return _run(network, taps, "", {"taps": [asdict(tap) for tap in taps]}, pictures, policy, means)


def activations(network: NetworkSpec, boundary: str, pictures: Pictures, policy: Policy, means: Means) -> StoredRows:
    """Give what enters a module of a network, running what comes before it on those pictures only that have no row yet.

    Args:
        network: The network, with its preprocessing.
        boundary: The module's path, before which the network can be cut.
        pictures: The pictures.
        policy: In what way they are computed, with thumbnails.
        means: By what means.

    Returns:
        Rows in uint8, `[pictures, bytes]`, which `activation_rows.unpack` takes apart by their notes. Unreadable
        pictures are remarked upon.

    Raises:
        StoreError: The cache folder cannot be read or written.
        UserError: As `rows`, or the network cannot be cut there.
    """
    return _run(network, [], boundary, {"boundary": boundary}, pictures, policy, means)


def _run(
    network: NetworkSpec,
    taps: Sequence[Tap],
    boundary: str,
    where: Mapping[str, Any],
    pictures: Pictures,
    policy: Policy,
    means: Means,
) -> StoredRows:
    preprocessing = network.preprocessing
    assert preprocessing is not None
    key = {
        "network": network.identity,
        "preprocessing": asdict(preprocessing),
        **where,
        "policy": policy.identity(preprocessing.crop),
        "torch": version("torch"),
    }

    def compute(missing: list[int]) -> ComputedRows:
        _require_computable(means, missing)
        from headstart.datamodules.row_computation import ComputedRows, load

        loaded = load(network, taps, policy, boundary)
        if means.check_widths is not None and loaded.widths is not None:
            means.check_widths(loaded.widths)
        return ComputedRows(pictures, missing, preprocessing, policy, means, loaded)

    return _find(key, pictures, means, compute)


def pixels(preprocessing: Preprocessing, pictures: Pictures, means: Means) -> StoredRows:
    """Give prepared pictures, decoding those only that have no row yet.

    Args:
        preprocessing: Size and interpolation; the normalisation has no part in it.
        pictures: The pictures. Unreadable ones are black, and remarked upon.
        means: By what means they are prepared.

    Returns:
        Rows in uint8, `[pictures, 3, crop, crop]`.

    Raises:
        StoreError: The cache folder cannot be read or written.
        UserError: A picture cannot be read at the moment, or a process that decodes was killed.
    """
    policy = Policy(unreadable="remark")
    key = {
        "resize": preprocessing.resize,
        "crop": preprocessing.crop,
        "interpolation": preprocessing.interpolation,
        "unreadable": policy.unreadable,
        "torch": version("torch"),
        "device": "cpu",  # wherever they are used
    }

    def compute(missing: list[int]) -> ComputedRows:
        _require_computable(means, missing)
        from headstart.datamodules.row_computation import ComputedRows

        return ComputedRows(pictures, missing, preprocessing, policy, means)

    return _find(key, pictures, means, compute)


def label_maps(preprocessing: Preprocessing, maps: Pictures, means: Means) -> StoredRows:
    """Give prepared label maps, of the places of the prepared photos; otherwise as `pixels`.

    Args:
        preprocessing: How the photos are prepared; a map's pixels are taken from the nearest ones.
        maps: The label maps, whose three channels all are the label.
        means: By what means they are prepared.

    Returns:
        Labels in uint8, `[maps, crop, crop]`.
    """
    found = pixels(replace(preprocessing, interpolation="nearest"), maps, means)
    return replace(found, rows=found.rows[:, 0].copy())


def _require_computable(means: Means, missing: Sequence[int]) -> None:
    if means.only_stored:
        raise NotStoredError(f"{len(missing)} {means.title} are still to be passed through the network")


def _find(key: Mapping[str, Any], pictures: Pictures, means: Means, compute: Compute) -> StoredRows:
    # These decode and scale.
    versions = {package: version(package) for package in ("pillow", "torchvision")}
    whole = {**key, "decoding": pictures.decoding, **versions}
    digests = pictures.digests(means.cache)
    try:
        return RowStore(means.cache / TABLES).get(whole, digests, compute)
    except RuntimeError as error:
        if not DECODING_ENDED.search(str(error)):
            raise
        *_, reason = str(error).strip().splitlines()
        raise UserError(
            f"num_workers: a process that decodes pictures came to an end ({reason}); what is computed is kept, so "
            "try again, with fewer of them or more memory"
        ) from error
