"""Effects of a table's holes on a finding: the same finding on every part of the table that could be taken."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from headstart.contract.tables.holes import largest_complete, usable
from headstart.contract.tables.table import TransferTable
from headstart.evaluation.audit.rankers import Facts, rank_sources, summarize
from headstart.evaluation.estimates import with_interval
from headstart.metrics.arrays import Flags

# What each part keeps.
PAIRWISE, LARGEST = "each target's own sources", "part without holes"
ALL_TARGETS, CROSSED = "sources that all targets have", "these sources on the targets of that part"
ALL_SOURCES = "targets that all sources have"


def parts_without_holes(table: TransferTable) -> dict[str, tuple[Flags, Flags]]:
    """Return the sources `[n]` and targets `[t]` of the parts of a table that can be taken.

    A part with fewer than two of each is none, nor is one that is an earlier one by another name.
    """
    holes = table.holes
    sources, targets = largest_complete(holes, table.known)
    all_sources, all_targets = (np.ones(size, dtype=np.bool_) for size in holes.shape)
    complete, whole = np.asarray(~holes.any(axis=1)), np.asarray(~holes.any(axis=0))
    parts = {
        PAIRWISE: usable(table),
        LARGEST: (sources, targets),
        ALL_TARGETS: (complete, all_targets),
        CROSSED: (complete, targets),
        ALL_SOURCES: (all_sources, whole),
    }
    different = {(tuple(part[0]), tuple(part[1])): name for name, part in reversed(parts.items())}
    return {name: parts[name] for name in parts if name in different.values() and min(map(sum, parts[name])) > 1}


def effects_of_holes(table: TransferTable) -> dict[str, Any]:
    """Describe how well every ranker does on the parts of a table with holes, by weighted Kendall.

    Args:
        table: The table with its holes.

    Returns:
        For each part its numbers of `sources` and `targets`. Under `rankers` it has the mean over targets of each with
        its interval. Empty for a table without holes.
    """
    if not table.holes.any():
        return {}
    described = {}
    for name, (sources, targets) in parts_without_holes(table).items():
        part = table.part(sources, targets)
        summaries = summarize(part, rank_sources(part, Facts()))["rankers"]
        described[name] = {
            "sources": len(part.sources),
            "targets": len(part.targets),
            "rankers": {ranker: measures["weighted_kendall"] for ranker, measures in summaries.items()},
        }
    return described


def kept_in_words(document: Mapping[str, Any]) -> str:
    """Return a line that says which part of a table with holes an audit is of, for figures; empty without holes."""
    if not document["holes"]:
        return ""
    kinds = (f"{len(document[kind])} of {document['whole'][kind]} {kind}" for kind in ("sources", "targets"))
    return f"\nthe table has holes: {', '.join(kinds)}"


def effects_in_words(effects: dict[str, Any], ranker: str) -> list[str]:
    """Return a sentence that says whether sources or targets move a ranker between two parts without holes.

    Args:
        effects: Result of `effects_of_holes`.
        ranker: Name of the ranker.
    """
    kept = [effects.get(name, {}).get("targets") for name in (ALL_TARGETS, LARGEST)]
    if CROSSED not in effects or None in kept or kept[0] == kept[1]:
        return []
    first, crossed, last = (effects[name]["rankers"][ranker] for name in (ALL_TARGETS, CROSSED, LARGEST))
    if None in (first["mean"], crossed["mean"], last["mean"]):
        return []
    by_targets, by_sources = crossed["mean"] - first["mean"], last["mean"] - crossed["mean"]
    sizes = [f"{effects[name]['sources']:,} x {effects[name]['targets']:,}" for name in (ALL_TARGETS, LARGEST)]
    return [
        f"Holes matter: the mean rank reaches {with_interval(first)} on the {sizes[0]} sources and targets that leave "
        f"no target out, and {with_interval(last)} on the part without holes, {sizes[1]}. Other targets with the same "
        f"sources change it by {by_targets:+.3f}, other sources on the same targets by {by_sources:+.3f}."
    ]
