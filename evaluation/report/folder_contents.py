"""Contents of the folders of a page: whether there are traces, and the documents of other commands."""

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
# The kind of a document and its required keys, by the name of the file.
DOCUMENTS = {
    **dict.fromkeys(SIMILARITY, ("similarity", ("pairwise", "n_stimuli", "digests"))),
    "transferability.json": ("transferability", ("scores", "mean_ranks", "metrics", "digests")),
    "audit.json": ("audit", ("rankers", "best", "metrics", "targets", "sources")),
    "stability.json": (
        "stability",
        ("setup_stability", "setup_stability_pairs", "win_rate_percent", "metrics", "experiments"),
    ),
}


@dataclass
class FolderContents:
    """Contents of folders.

    Attributes:
        has_traces: Whether there is a run or a ledger.
        documents: Results of other commands, by kind and path.
        foreign: Files of other programs that have the name of such results.
    """

    has_traces: bool = False
    documents: dict[str, dict[Path, Document]] = field(default_factory=dict)
    foreign: list[Path] = field(default_factory=list)


def find_contents(folders: Sequence[str]) -> FolderContents:
    """Find the runs, ledgers and documents below folders, in each in the order of the names.

    Args:
        folders: The folders; files are ignored, because the shell may have expanded a pattern to them.

    Raises:
        UserError: A folder does not exist, there is nothing in them that a page shows, or a document is damaged.
    """
    for folder in folders:
        if not Path(folder).exists():
            raise UserError(f"folder: there is no folder {folder!r}; give one that holds runs")

    contents = FolderContents()
    for folder, below, names in chain.from_iterable(map(os.walk, folders)):
        below.sort()
        path = Path(folder)
        contents.has_traces |= FILES[1] in names or is_ledger(path)
        for name in sorted(DOCUMENTS.keys() & set(names)):
            kind, keys = DOCUMENTS[name]
            document = _read(path / name, keys)
            if document is None:
                contents.foreign.append(path / name)
            else:
                contents.documents.setdefault(kind, {})[path / name] = document

    if not (contents.has_traces or contents.documents):
        searched = f"{', '.join(map(repr, folders))} {'holds' if len(folders) == 1 else 'hold'}"
        raise UserError(
            f"folder: {searched} no run of headstart train, no ledger, and no results of cka, transferability, "
            "audit or stability"
        )
    return contents


def _read(path: Path, keys: Sequence[str]) -> Document | None:
    """Read a document; None where it has none of the required keys."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise damaged(path, error) from error
    if not isinstance(document, dict) or not any(key in document for key in keys):
        return None
    missing = [key for key in keys if key not in document]
    if missing:
        raise damaged(path, f"no {', '.join(missing)}")
    return document


def damaged(path: Path, reason: object) -> UserError:
    """Return the error of a document that cannot be shown."""
    return UserError(f"folder: {str(path)!r} cannot be read ({reason}); move it elsewhere, or make it again")
