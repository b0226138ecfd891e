"""What lies in folders that a page is made of: whether there are traces, and the documents of other commands."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from headstart.evaluation.runs import FILES
from headstart.evaluation.stored_traces import is_ledger
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES
from headstart.output.errors import UserError

Document = Mapping[str, Any]
SIMILARITY = ("cka.json", "score.json", *(f"{name}.json" for name in SIMILARITY_MEASURES if name != DEFAULT_MEASURE))
# What the sections need of a document, by the names of files.
NEEDED = {
    **dict.fromkeys(SIMILARITY, ("pairwise", "n_stimuli", "digests")),
    "transferability.json": ("scores", "mean_ranks", "metrics", "digests"),
    "audit.json": ("rankers", "metrics", "targets", "sources"),
    "stability.json": ("setup_stability", "setup_stability_pairs", "win_rate_percent", "metrics", "experiments"),
}


@dataclass
class Material:
    """What was found, by paths.

    Attributes:
        traces: Whether there is a run or a ledger.
        similarities: Results of `headstart cka`.
        transferability: Results of `headstart transferability`.
        audits: Results of `headstart audit`.
        stability: Results of `headstart stability`.
        foreign: What is called like one of these, and is none.
    """

    traces: bool = False
    similarities: dict[Path, Document] = field(default_factory=dict)
    transferability: dict[Path, Document] = field(default_factory=dict)
    audits: dict[Path, Document] = field(default_factory=dict)
    stability: dict[Path, Document] = field(default_factory=dict)
    foreign: list[Path] = field(default_factory=list)

    @property
    def has_documents(self) -> bool:
        """Whether there are results of commands that evaluate."""
        return bool(self.similarities or self.transferability or self.audits or self.stability)


def find_material(folders: Sequence[str]) -> Material:
    """Look for everything below folders, in each in the order of the names.

    Args:
        folders: The folders; what is none is passed over, because the shell may have given it for a pattern.

    Raises:
        UserError: One of them is not there, there is nothing in them that a page shows, or a damaged document.
    """
    for folder in folders:
        if not Path(folder).exists():
            raise UserError(f"folder: there is no folder {folder!r}; give one that holds runs")
    found = Material()
    for here, below, names in chain.from_iterable(map(os.walk, folders)):
        below.sort()
        path = Path(here)
        found.traces |= FILES[1] in names or is_ledger(path)
        for name in sorted(NEEDED.keys() & set(names)):
            document = _read(path / name)
            if document is None:
                found.foreign.append(path / name)
            else:
                _documents(found, name)[path / name] = document
    if not (found.traces or found.has_documents):
        given = f"{', '.join(map(repr, folders))} {'holds' if len(folders) == 1 else 'hold'}"
        raise UserError(
            f"folder: {given} no run of headstart train, no ledger and no results of its commands; give another"
        )
    return found


def _documents(found: Material, name: str) -> dict[Path, Document]:
    if name in SIMILARITY:
        return found.similarities
    return {
        "transferability.json": found.transferability,
        "audit.json": found.audits,
        "stability.json": found.stability,
    }[name]


def _read(path: Path) -> Document | None:
    """Read a document; None where it has nothing of what ours have."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise damaged(path, error) from error
    needed = NEEDED[path.name]
    if not isinstance(document, dict) or not any(key in document for key in needed):
        return None
    missing = [key for key in needed if key not in document]
    if missing:
        raise damaged(path, f"no {', '.join(missing)}")
    return document


def damaged(path: Path, reason: object) -> UserError:
    """Give the error of a document that is ours, and cannot be shown."""
    return UserError(f"folder: {str(path)!r} cannot be read ({reason}); move it elsewhere, or make it again")
