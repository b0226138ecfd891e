"""Holes of a table: its largest part without any, and what they leave of each target."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from headstart.metrics.arrays import Flags
from headstart.output.errors import UserError

if TYPE_CHECKING:
    from headstart.evaluation.stability.table import TransferTable

# Sources or targets with holes up to which all subsets of them are tried.
MOST_TRIED = 16
MOST_NAMED = 5


def largest_complete(holes: Flags, counted: Flags) -> tuple[Flags, Flags]:
    """Find the part of a table without holes that has the most cells.

    Of parts with as many cells the one with more targets is taken, then the first one. All subsets of the targets with
    holes are tried, or of the sources with holes where these are fewer. Where both are more than 16, the source or
    target with the largest share of holes is left out until there are none.

    Args:
        holes: Which cells are missing, `[n, t]`.
        counted: Which cells count, `[n, t]`.

    Returns:
        Which sources `[n]` and which targets `[t]` are in that part.
    """
    with_holes = [np.flatnonzero(holes.any(axis=1 - axis)) for axis in (0, 1)]
    axis = int(len(with_holes[1]) <= len(with_holes[0]))
    if len(with_holes[axis]) > MOST_TRIED:
        return _drop_worst(holes)

    # Lines run along the axis whose subsets are tried, and are what is kept or left out.
    lines, cells = (holes.T, counted.T) if axis else (holes, counted)
    best, best_kept = (-1, -1), (np.array([], np.bool_), np.array([], np.bool_))
    for count in range(len(with_holes[axis]) + 1):
        for dropped in combinations(with_holes[axis].tolist(), count):
            kept = np.ones(len(lines), dtype=np.bool_)
            kept[list(dropped)] = False
            across = np.asarray(~lines[kept].any(axis=0))
            size = int(cells[kept][:, across].sum()), int(kept.sum() if axis else across.sum())
            if size > best:
                best, best_kept = size, (kept, across)
    return (best_kept[1], best_kept[0]) if axis else best_kept


def _drop_worst(holes: Flags) -> tuple[Flags, Flags]:
    """Leave out the source or target with the largest share of holes, one after the other, until there are none."""
    sources, targets = (np.ones(size, dtype=np.bool_) for size in holes.shape)
    while (left := holes & sources[:, None] & targets).any():
        by_source, by_target = left.sum(axis=1) / targets.sum(), left.sum(axis=0) / sources.sum()
        if by_source.max() > by_target.max():
            sources[by_source.argmax()] = False
        else:
            targets[by_target.argmax()] = False
    return sources, targets


def keep_complete(table: TransferTable) -> tuple[Flags, Flags, str]:
    """Return the sources and targets of the largest part without holes, and a sentence that says what is left out.

    Raises:
        UserError: The part has fewer than two sources.
    """
    sources, targets = largest_complete(table.holes, table.known)
    if sources.sum() < 2 or not targets.any():
        raise UserError("missing: no two sources are complete on a target; take --missing=pairwise")
    kept, cells = int(table.known[sources][:, targets].sum()), int(table.known.sum())
    parts = [
        f"{int(chosen.sum()):,} of {len(names):,} {kind}{_without(names, chosen)}"
        for kind, names, chosen in (("sources", table.sources, sources), ("targets", table.targets, targets))
    ]
    return (
        sources,
        targets,
        (f"The largest part without holes is used: {parts[0]} and {parts[1]}, {kept:,} of {cells:,} known cells."),
    )


def _without(names: list[str], chosen: Flags) -> str:
    dropped = [name for name, kept in zip(names, chosen, strict=True) if not kept]
    more = f" and {len(dropped) - MOST_NAMED:,} more" if len(dropped) > MOST_NAMED else ""
    return f" (without {', '.join(dropped[:MOST_NAMED])}{more})" if dropped else ""


def describe_holes(table: TransferTable) -> str:
    """Return a sentence that says how many cells are missing, and how many sources the targets have."""
    count = table.known.sum(axis=0)
    holes, cells = int(table.holes.sum()), int((~table.own).sum())
    fewest, most = int(count.argmin()), int(count.argmax())
    empty = [name for name, known in zip(table.sources, table.known, strict=True) if not known.any()]
    empty += [name for name, number in zip(table.targets, count, strict=True) if number < 2]
    more = f" and {len(empty) - MOST_NAMED:,} more" if len(empty) > MOST_NAMED else ""
    left_out = f" Left out for want of cells: {', '.join(empty[:MOST_NAMED])}{more}." if empty else ""
    return (
        f"{holes:,} of {cells:,} cells are missing, and every target uses the sources that it has: from "
        f"{count[fewest]:,} ({table.targets[fewest]}) to {count[most]:,} ({table.targets[most]}) of "
        f"{len(table.sources):,}. Targets are thus compared on different sources.{left_out}"
    )
