"""Holes of a table: its largest part without any, and what they leave of each target."""

from __future__ import annotations

import numpy as np

from headstart.contract.tables.table import TransferTable
from headstart.metrics.arrays import Flags
from headstart.output.errors import UserError

# Subsets of the sources or targets with holes, times the sources or targets, up to which all subsets are tried.
MOST_TRIED = 2**23
MOST_NAMED = 5


def largest_complete(holes: Flags, counted: Flags) -> tuple[Flags, Flags] | None:
    """Find the largest part of a table without holes, by its cells, with two sources and two targets if possible.

    All subsets of the targets with holes are tried, or of the sources with holes where these are fewer. Of parts with
    as many cells the one with more targets is taken.

    Args:
        holes: Which cells are missing, `[n, t]`.
        counted: Which cells count, `[n, t]`.

    Returns:
        Which sources `[n]` and which targets `[t]` are in that part; None if there are too many subsets.
    """
    with_holes = holes.any(axis=1).sum(), holes.any(axis=0).sum()
    if 2 ** int(min(with_holes)) * max(holes.shape) > MOST_TRIED:
        return None
    if with_holes[0] < with_holes[1]:
        return _best_lines(holes, counted, False)
    targets, sources = _best_lines(holes.T, counted.T, True)
    return sources, targets


def _best_lines(holes: Flags, counted: Flags, of_targets: bool) -> tuple[Flags, Flags]:
    """Try all subsets of the lines with holes that are left out; return the lines and what lies across that are kept.

    Args:
        holes: `[lines, across]`.
        counted: `[lines, across]`.
        of_targets: Whether the lines are the targets.
    """
    with_holes = np.flatnonzero(holes.any(axis=1))
    subsets = np.arange(1 << len(with_holes))
    kept_lines = np.ones((len(subsets), len(holes)), dtype=np.bool_)
    kept_lines[:, with_holes] = (subsets[:, None] >> np.arange(len(with_holes))) & 1 == 0
    kept_across = kept_lines.astype(np.float32) @ holes.astype(np.float32) == 0
    cells = ((kept_across.astype(np.float32) @ counted.T.astype(np.float32)) * kept_lines).sum(axis=1)

    lines, across = kept_lines.sum(axis=1), kept_across.sum(axis=1)
    enough = np.minimum(np.minimum(lines, across), 2)
    best = int(np.lexsort((-subsets, lines if of_targets else across, cells, enough))[-1])
    return kept_lines[best], kept_across[best]


def usable(table: TransferTable) -> tuple[Flags, Flags]:
    """Return which sources `[n]` have a cell, and which targets `[t]` have two, so that there is something to rank."""
    targets = np.asarray(table.known.sum(axis=0) > 1)
    return np.asarray(table.known[:, targets].any(axis=1)), targets


def keep_complete(table: TransferTable) -> tuple[TransferTable, str]:
    """Return the largest part without holes, and a sentence that says what is left out.

    Raises:
        UserError: The part has fewer than two sources, or there are too many holes to find it.
    """
    largest = largest_complete(table.holes, table.known)
    if largest is None:
        raise UserError("missing: too many sources and targets have holes to find the rest; take --missing=pairwise")
    part = table.part(*largest)
    if len(part.sources) < 2 or not part.targets:
        raise UserError("missing: no two sources are complete on a target; take --missing=pairwise")
    remaining = f"{_remaining(table, part)}, {part.known.sum():,} of {table.known.sum():,} known cells"
    return part, f"The largest part without holes is used: {remaining}."


def describe_holes(table: TransferTable, part: TransferTable) -> str:
    """Return a sentence that says how many cells of a table are missing, and what remains.

    Args:
        table: The table.
        part: Its part with the sources and targets that are used.
    """
    count = part.known.sum(axis=0)
    fewest, most = int(count.argmin()), int(count.argmax())
    return (
        f"{table.holes.sum():,} of {(~table.own).sum():,} cells are missing. {_remaining(table, part)} are used, and "
        f"every target uses the sources that it has: from {count[fewest]:,} ({part.targets[fewest]}) to "
        f"{count[most]:,} ({part.targets[most]}). Targets are thus compared on different sources."
    )


def _remaining(table: TransferTable, part: TransferTable) -> str:
    """Return how many sources and targets of a table are in a part, and which are not."""
    parts = []
    for kind, names, kept in (("sources", table.sources, part.sources), ("targets", table.targets, part.targets)):
        dropped = sorted(set(names) - set(kept), key=names.index)
        without = f" (without {name_some(dropped)})" if dropped else ""
        parts.append(f"{len(kept):,} of {len(names):,} {kind}{without}")
    return " and ".join(parts)


def name_some(names: list[str]) -> str:
    """List the first names in quotes, and say how many more there are."""
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(map(repr, names[:MOST_NAMED]))}{more}"
