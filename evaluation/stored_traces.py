"""Traces of a ledger as runs: all methods and orderings of one stream."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.protocol_differences import SHOWN, distinguish_methods
from headstart.evaluation.runs import Run
from headstart.metrics.sample_efficiency.curves import CONSECUTIVE, NOT_EVALUATED, THRESHOLD, Curves, Measure
from headstart.metrics.sample_efficiency.result_warnings import NOT_FINITE, last_evaluation_faults
from headstart.output.errors import UserError
from headstart.store.json_digest import digest_of
from headstart.store.ledger_file import DESCRIPTION, FILE, LedgerError
from headstart.store.ledger_reader import LedgerReader

MEASURE: Measure = "accuracy"
# Key of a stream that was evaluated lazily: its threshold and streak length.
LAZY = "lazy"


def is_ledger(folder: Path) -> bool:
    """Return whether a folder is that of a ledger."""
    return (folder / FILE).is_file()


@contextmanager
def open_ledger(folder: Path) -> Iterator[LedgerReader]:
    """Open a ledger for reading; a UserError where it cannot be read."""
    try:
        with LedgerReader(folder) as ledger:
            yield ledger
    except LedgerError as error:
        raise UserError(f"runs: the ledger {error}; give another folder") from error


def read_stream(
    ledger: LedgerReader,
    digest: str,
    stream: Mapping[str, Any],
    runs: Sequence[Run],
    criterion: Mapping[str, Any],
) -> Run:
    """Return the traces of one stream of a ledger as a run.

    Args:
        ledger: The ledger.
        digest: Digest of the stream.
        stream: Its document in the ledger.
        runs: Runs whose methods keep their names; other methods have those of their first measurement.
        criterion: Threshold and streak length; where they are missing, those of a lazily evaluated stream, or those of
            `headstart train`.

    Returns:
        The traces, -1 throughout if there is none of a method in an ordering. The sample limit is where the longest
        trace ends.

    Raises:
        LedgerError: The ledger cannot be read.
    """
    traces = ledger.traces(digest)
    documents = traces.methods
    if not traces.counts:
        raise UserError(f"runs: all traces of a stream in the ledger {str(ledger.folder)!r} are damaged")
    names = _name(documents, {digest_of(run.describe(name)): name for run in runs for name in run.curves.methods})
    curves = _curves(stream, names, [*documents], traces.counts, criterion)

    methods: dict[str, dict[str, Any]] = {
        names[key]: {"key": _without_description(document)} for key, document in documents.items()
    }
    for key, counts in zip(documents, curves.correct, strict=True):
        diverged = traces.diverged.get(key, 0)
        faults = [f"{NOT_FINITE} {diverged} orderings."] * bool(diverged) + last_evaluation_faults(counts)
        methods[names[key]] |= {"warnings": faults} if faults else {}
    protocol = {"dataset": "unnamed photos", "backbone": "unnamed", "weights": stream["weights_sha256"][:SHOWN]}
    protocol |= {**_without_description(stream), **stream.get(DESCRIPTION, {}), "stream_sha256": digest}
    damaged = [f"{names.get(method, method[:SHOWN])} in ordering {ordering}" for method, ordering in traces.damaged]
    document = {"complete": True, "methods": methods, "ledger": True, "damaged": damaged}
    return Run(ledger.folder, document, curves, protocol)


def _curves(
    stream: Mapping[str, Any],
    names: Mapping[str, str],
    methods: Sequence[str],
    stored: Mapping[tuple[str, int], NDArray[np.int64]],
    criterion: Mapping[str, Any],
) -> Curves:
    """Return stored counts, by method and ordering, as curves of these methods."""
    orderings = sorted({ordering for _, ordering in stored})
    row, column = ({key: index for index, key in enumerate(keys)} for keys in (methods, orderings))

    # Methods that lack an ordering have no trace there.
    correct = np.full((len(row), len(column), max(map(len, stored.values()))), NOT_EVALUATED, dtype=np.int32)
    for (method, ordering), counts in stored.items():
        correct[row[method], column[ordering], : len(counts)] = counts

    seen = stream["batch_size"] * stream["evaluate_every"] * np.arange(1, correct.shape[-1] + 1)
    samples_seen = np.minimum(seen, stream.get("max_samples", seen[-1]))
    return Curves(
        methods=[names[key] for key in methods],
        orderings=np.array(orderings),
        samples_seen=samples_seen,
        correct=correct,
        validation_size=stream["validation_size"],
        all_correct=stream.get("all_correct", stream["validation_size"]),
        measure=stream.get("measure", MEASURE),
        limit=int(samples_seen[-1]),
        **{"threshold": THRESHOLD, "consecutive": CONSECUTIVE, **stream.get(LAZY, {}), **criterion},
    )


def _name(documents: Mapping[str, dict[str, Any]], known: Mapping[str, str]) -> dict[str, str]:
    """Return names of methods by digest; methods of one name also have the values in which they differ."""
    plain = {
        digest: known.get(digest, document.get(DESCRIPTION, {}).get("name", document["class"].rpartition(".")[2]))
        for digest, document in documents.items()
    }
    names = {}
    for name in dict.fromkeys(plain.values()):
        # The values must also differ from those of variants that already have them in their names.
        variants = [digest for digest in plain if plain[digest] == name or plain[digest].startswith(f"{name} (")]
        distinct = distinguish_methods(name, {digest: _without_description(documents[digest]) for digest in variants})
        for digest in (variant for variant in variants if plain[variant] == name):
            is_unique = digest in known or (len(variants) == 1 and name not in known.values())
            names[digest] = name if is_unique else distinct[digest]
    return names


def _without_description(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != DESCRIPTION}
