"""What lies in a folder that a page is made of: whether there are traces, and the documents of other commands."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation.runs import FILES
from evaluation.stored_traces import is_ledger
from metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES
from output.errors import UserError

Document = Mapping[str, Any]
SIMILARITY = ("cka.json", "score.json", *(f"{name}.json" for name in SIMILARITY_MEASURES if name != DEFAULT_MEASURE))
# What the sections need of a document, by the names of files.
NEEDED = {
    **dict.fromkeys(SIMILARITY, ("pairwise", "n_stimuli", "digests")),
    "transferability.json": ("scores", "mean_ranks", "metrics", "digests"),
    "stability.json": ("setup_stability", "setup_stability_pairs", "win_rate_percent", "metrics", "experiments"),
}


@dataclass
class Material:
    """What was found, by paths.

    Attributes:
        traces: Whether there is a run or a ledger.
        similarities: Results of `evaluate.py cka`.
        transferability: Results of `evaluate.py transferability`.
        stability: Results of `evaluate.py stability`.
    """

    traces: bool = False
    similarities: dict[Path, Document] = field(default_factory=dict)
    transferability: dict[Path, Document] = field(default_factory=dict)
    stability: dict[Path, Document] = field(default_factory=dict)


def find_material(folder: Path) -> Material:
    """Look for everything below a folder, in the order of the names.

    Args:
        folder: The folder.

    Raises:
        UserError: There is no such folder, nothing in it that a page shows, or a damaged document.
    """
    if not folder.is_dir():
        raise UserError(f"folder: there is no folder {str(folder)!r}; give one that holds runs")
    found = Material()
    for here, below, names in os.walk(folder):
        below.sort()
        path = Path(here)
        found.traces |= FILES[1] in names or is_ledger(path)
        for name in sorted(NEEDED.keys() & set(names)):
            _documents(found, name)[path / name] = _read(path / name)
    if not (found.traces or found.similarities or found.transferability or found.stability):
        raise UserError(
            f"folder: {str(folder)!r} holds no run of train.py, no ledger and no results of evaluate.py; give another"
        )
    return found


def _documents(found: Material, name: str) -> dict[Path, Document]:
    return found.similarities if name in SIMILARITY else found.transferability if name[0] == "t" else found.stability


def _read(path: Path) -> Document:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        missing = [key for key in NEEDED[path.name] if key not in document]
        if missing:
            raise ValueError(f"no {', '.join(missing)}")
        return dict(document)
    except (OSError, ValueError, TypeError) as error:
        raise UserError(
            f"folder: {str(path)!r} cannot be read ({error}); move it elsewhere, or make it again"
        ) from error
