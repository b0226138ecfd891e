"""Effects of a table's holes on a finding: the same finding on every part of the table that could be taken."""

from typing import Any

import numpy as np

from headstart.contract.tables.holes import largest_complete, usable
from headstart.contract.tables.table import TransferTable
from headstart.evaluation.audit.rankers import rank_sources, summarize


def effects_of_holes(table: TransferTable) -> dict[str, Any]:
    """Describe how well every ranker does on the parts of a table with holes, by weighted Kendall.

    A part with fewer than two sources or targets is left out, and so is one that equals an earlier one.

    Args:
        table: The table with its holes.

    Returns:
        For each part its numbers of `sources` and `targets`. Under `rankers` it has the mean over targets of each with
        its interval. Empty for a table without holes.
    """
    holes = table.holes
    if not holes.any():
        return {}
    parts = {
        "each target's own sources": usable(table),
        "part without holes": largest_complete(holes, table.known),
        "sources that all targets have": (np.asarray(~holes.any(axis=1)), np.ones(len(table.targets), dtype=np.bool_)),
    }

    described: dict[str, Any] = {}
    seen = set()
    for name, (sources, targets) in parts.items():
        names = *sources, None, *targets
        if min(sources.sum(), targets.sum()) < 2 or names in seen:
            continue
        seen.add(names)
        part = table.part(sources, targets)
        summaries = summarize(part, rank_sources(part, {}))["rankers"]
        described[name] = {
            "sources": len(part.sources),
            "targets": len(part.targets),
            "rankers": {ranker: measures["weighted_kendall"] for ranker, measures in summaries.items()},
        }
    return described
