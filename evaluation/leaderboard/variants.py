"""Variants of a method that runs call by one name, as a sweep over its hyperparameters does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from headstart.evaluation.protocol_differences import name_apart
from headstart.evaluation.runs import Run
from headstart.store.json_digest import digest_of

HYPERPARAMETERS, DIGESTS = "hyperparameters", "digests"


def name_variants(settings: Mapping[str, Sequence[Run]]) -> dict[str, list[Run]]:
    """Add hyperparameters to the names of methods where runs of one setting differ in these alone.

    A variant has the same name in all settings. Methods that also differ in their code keep their name: they are other
    versions, not variants.

    Args:
        settings: The runs of each setting.
    """
    kinds: dict[str, dict[str, Any]] = {}
    varied: dict[str, None] = {}
    for runs in settings.values():
        documents: dict[str, list[dict[str, Any]]] = {}
        for run in runs:
            for name in run.curves.methods:
                # Schema 1 has no hyperparameters.
                if HYPERPARAMETERS in (document := run.describe(name)):
                    documents.setdefault(name, []).append(document)

        for name, same in documents.items():
            variants = {digest_of(each[HYPERPARAMETERS]): each[HYPERPARAMETERS] for each in same}
            kinds.setdefault(name, {}).update(variants)
            if len(variants) > 1 and _are_alike_otherwise(same):
                varied[name] = None

    names = {name: name_apart(name, kinds[name]) for name in varied}
    return {key: [_rename(run, names) if names else run for run in runs] for key, runs in settings.items()}


def _are_alike_otherwise(documents: Sequence[Mapping[str, Any]]) -> bool:
    """Whether documents agree in all but hyperparameters, and code that these name, such as an optimiser's."""
    modules = set.intersection(*(set(each.get(DIGESTS) or {}) for each in documents))
    shared = [{module: (each.get(DIGESTS) or {})[module] for module in sorted(modules)} for each in documents]
    others = [{**each, HYPERPARAMETERS: None, DIGESTS: its} for each, its in zip(documents, shared, strict=True)]
    return all(each == others[0] for each in others)


def _rename(run: Run, names: Mapping[str, Mapping[str, str]]) -> Run:
    """Rename the methods of a run."""
    new = {name: name for name in run.curves.methods}
    for name in new:
        document = run.describe(name)
        if name in names and HYPERPARAMETERS in document:
            new[name] = names[name][digest_of(document[HYPERPARAMETERS])]
    methods = {new.get(name, name): each for name, each in run.document.get("methods", {}).items()}
    model = {new.get(name, name): each for name, each in (run.model.get("methods") or {}).items()}
    return replace(
        run,
        curves=replace(run.curves, methods=list(new.values())),
        document={**run.document, "methods": methods},
        model={**run.model, "methods": model},
    )
