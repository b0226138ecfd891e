"""A comparison from a ledger alone: all methods and orderings that were fed one stream."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headstart.evaluation.runs import Run
from headstart.metrics.sample_efficiency.curves import CONSECUTIVE, NOT_EVALUATED, THRESHOLD, Curves, Measure
from headstart.output.errors import UserError
from headstart.store.ledger import FILE, TOLD
from headstart.store.ledger_reader import LedgerReader

# Characters of a digest that are shown, and values that a message lists.
SHOWN, LISTED = 8, 6
DIGEST = 64
BASELINE = "baseline"
MEASURE: Measure = "accuracy"
# What a stream says that was evaluated lazily: threshold and streak length.
LAZY = "lazy"
# What differs only because something else does.
FOLLOWING = ("start", "all_correct", "largest_class")


def is_ledger(folder: Path) -> bool:
    """Say whether a folder is that of a ledger."""
    return (folder / FILE).is_file()


def read_stored(
    folder: Path,
    where: Mapping[str, Any],
    stream: str | None = None,
    known: Mapping[str, str] | None = None,
    criterion: Mapping[str, Any] | None = None,
) -> Run:
    """Read what a ledger holds of one stream, as if it were a run.

    Args:
        folder: Folder of the ledger.
        where: What the stream must be, by the keys of its protocol.
        stream: Its digest, where that is known.
        known: Names of methods, by their digests; others are called as when they were first measured.
        criterion: Threshold and streak length where they are asked for; by default those for which a stream was
            evaluated lazily, or those of `headstart train`.

    Returns:
        The traces, -1 throughout where there is none of a method in an ordering; the sample limit is where the longest
        trace ends.

    Raises:
        UserError: The ledger has no such stream, or several.
        LedgerError: It cannot be read.
    """
    with LedgerReader(folder) as ledger:
        streams = ledger.streams()
        digest = _choose(folder, streams, where, stream)
        return read_stream(ledger, digest, streams[digest], known or {}, criterion or {})


def read_stream(
    ledger: LedgerReader,
    digest: str,
    fed: Mapping[str, Any],
    known: Mapping[str, str],
    criterion: Mapping[str, Any],
) -> Run:
    """Read what a ledger holds of one stream, as `read_stored` does.

    Args:
        ledger: The ledger.
        digest: Digest of the stream.
        fed: What it is, as the ledger tells it.
        known: As for `read_stored`.
        criterion: As for `read_stored`.
    """
    documents, stored, unfinished = ledger.methods(digest), ledger.traces(digest), ledger.unfinished(digest)
    names = _name(documents, known)
    orderings = sorted({ordering for _, ordering in stored})
    row, column = {key: i for i, key in enumerate(documents)}, {key: i for i, key in enumerate(orderings)}
    correct = np.full((len(row), len(column), max(map(len, stored.values()))), NOT_EVALUATED)
    for (method, ordering), counts in stored.items():
        correct[row[method], column[ordering], : len(counts)] = counts
    seen = fed["batch_size"] * fed["evaluate_every"] * np.arange(1, correct.shape[-1] + 1)
    samples_seen = np.minimum(seen, fed.get("max_samples", seen[-1]))
    curves = Curves(
        methods=[names[key] for key in documents],
        orderings=np.array(orderings),
        samples_seen=samples_seen,
        correct=correct,
        validation_size=fed["validation_size"],
        all_correct=fed.get("all_correct", fed["validation_size"]),
        measure=fed.get("measure", MEASURE),
        limit=int(samples_seen[-1]),
        **{"threshold": THRESHOLD, "consecutive": CONSECUTIVE, **fed.get(LAZY, {}), **criterion},
    )
    methods = {names[key]: {"provenance": _untold(document)} for key, document in documents.items()}
    protocol = {"dataset": "unnamed photos", "backbone": "unnamed", "weights": fed["weights_sha256"][:SHOWN]}
    protocol |= {**_untold(fed), **fed.get(TOLD, {}), "stream_sha256": digest}
    document = {"complete": True, "methods": methods, "unfinished": unfinished}
    return Run(ledger.folder, document, curves, protocol, model={}, backbone={})


def _choose(folder: Path, streams: Mapping[str, dict[str, Any]], where: Mapping[str, Any], stream: str | None) -> str:
    """Choose one stream."""
    flat = {digest: describe_stream(fed) for digest, fed in streams.items() if stream in (None, digest)}
    flat = choose_where(flat, where)
    if not flat:
        asked = "that the runs were fed" if stream else "of these values" if where else "with a finished trace"
        raise UserError(f"{'where' if where else 'runs'}: the ledger {str(folder)!r} holds no stream {asked}")
    if len(flat) > 1:
        differing = [*describe_differences(list(flat.values())).items()]
        listed = "; ".join(f"{key} ({values})" for key, values in differing[:LISTED])
        key = differing[0][0]
        example = f"--where.{key}={shlex.quote(show(next(iter(flat.values())).get(key)))}"
        raise UserError(
            f"runs: the ledger {str(folder)!r} holds the traces of {len(flat)} streams, which differ in {listed}; "
            f"choose one by --where, such as {example}"
        )
    (digest,) = flat
    return digest


def describe_stream(fed: Mapping[str, Any]) -> dict[str, Any]:
    """Give what a stream of a ledger is, by the keys of its protocol, with dots where they are nested."""
    # The measure is stored only where it is not the default.
    return flatten({"measure": MEASURE, **fed.get(TOLD, {}), **_untold(fed)})


def choose_where(flat: Mapping[str, dict[str, Any]], where: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Take those of several protocols that have the values asked for.

    Args:
        flat: The protocols, as `flatten` gives them.
        where: The values, by key; digests may be shortened.

    Raises:
        UserError: None of the protocols has such a key.
    """
    keys = {key for each in flat.values() for key in each}
    unknown = sorted(set(flatten(where)) - keys)
    if flat and unknown:
        raise UserError(f"where: {', '.join(unknown)} is none of {', '.join(sorted(keys))}")
    asked = flatten(where).items()
    return {name: each for name, each in flat.items() if all(_is(each.get(key), value) for key, value in asked)}


def _is(found: object, asked: object) -> bool:
    """Compare as printed; a digest may be shortened."""
    return str(found) == str(asked) or (len(str(found)) == DIGEST and str(found).startswith(str(asked)))


def describe_differences(documents: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """List the values of each key that differs; those that people know come first."""
    keys = dict.fromkeys(key for document in documents for key in document)
    values = {key: list(dict.fromkeys(_quote(document.get(key)) for document in documents)) for key in keys}
    differing = {
        key: ", ".join([*found[:LISTED], *["…"] * (len(found) > LISTED)])
        for key, found in values.items()
        if len(found) > 1
    }
    return dict(
        sorted(differing.items(), key=lambda item: "." in item[0] or "sha256" in item[0] or item[0] in FOLLOWING)
    )


def _quote(value: object) -> str:
    """Give a value as `show` does, a text with commas in quotation marks: it stands in a list."""
    shown = show(value)
    return repr(shown) if isinstance(value, str) and "," in shown else shown


def show(value: object) -> str:
    """Give a value as text, a digest shortened."""
    text = str(value)
    return text[:SHOWN] if len(text) == DIGEST else text


def _name(documents: Mapping[str, dict[str, Any]], known: Mapping[str, str]) -> dict[str, str]:
    """Name methods, by digest: those of one name also by what they differ in."""
    told = {
        digest: known.get(digest, document.get(TOLD, {}).get("name", document["class"].rpartition(".")[2]))
        for digest, document in documents.items()
    }
    names = {}
    for name in dict.fromkeys(told.values()):
        # Variants that have names of their own by now are told apart from.
        kin = [digest for digest in told if told[digest] == name or told[digest].startswith(f"{name} (")]
        apart = name_apart(name, {digest: _untold(documents[digest]) for digest in kin})
        for digest in (each for each in kin if told[each] == name):
            alone = digest in known or (len(kin) == 1 and name not in known.values())
            names[digest] = name if alone else apart[digest]
    return names


def name_apart(name: str, documents: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Name methods of one name also by what they differ in.

    Args:
        name: The name.
        documents: What they are, by digest.

    Returns:
        A name for each digest.
    """
    flat = {digest: flatten(document) for digest, document in documents.items()}
    keys = telling_apart(list(flat.values()))
    its = {
        digest: ", ".join(f"{_shorten(key)} {show(document[key])}" for key in keys if key in document)
        for digest, document in flat.items()
    }
    return {digest: f"{name} ({values or digest[:SHOWN]})" for digest, values in its.items()}


def telling_apart(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """Give so many keys that no two documents have the same values, first of those that all documents have."""
    differing = describe_differences(documents)
    keys: list[str] = []
    for key in sorted(differing, key=lambda key: sum(key not in document for document in documents)):
        if len({tuple(str(document.get(each)) for each in keys) for document in documents}) < len(documents):
            keys.append(key)
    return keys


def _shorten(key: str) -> str:
    return key.removeprefix("hyperparameters.").replace("init_args.", "").removesuffix(".class_path")


def _untold(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != TOLD}


def flatten(document: Mapping[str, Any]) -> dict[str, Any]:
    """Give the values of nested mappings by their paths, with dots."""
    flat: dict[str, Any] = {}
    for key, value in document.items():
        inner = flatten(value) if isinstance(value, Mapping) and value else {}
        flat |= {f"{key}.{path}": found for path, found in inner.items()} or {key: value}
    return flat


def find_method(methods: Iterable[str], provenances: Mapping[str, Mapping[str, Any]], asked: str, option: str) -> str:
    """Find a method by its name, or by its class where that is the only one of it.

    Args:
        methods: Names of the methods.
        provenances: What each is, by name.
        asked: The name, the class's name or its path.
        option: The option that asks, for the message.

    Raises:
        UserError: There is none, or several.
    """
    there = list(methods)
    if asked in there:
        return asked
    kind = asked.rpartition(".")[2]
    found = [name for name in there if str(provenances[name].get("class", "")).rpartition(".")[2] == kind]
    # Those of one name that are told apart by more.
    found = found or [name for name in there if name.startswith(f"{asked} (")]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(map(repr, found or there))
    raise UserError(f"{option}: {asked!r} is {f'{len(found)} methods; give one of' if found else 'none of'} {listed}")
