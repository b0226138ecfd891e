"""What a submission breaks of a challenge's own rules, beside the contract's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from headstart.contract.challenge import BlueRules, Challenge, Count, RedRules, untaken
from headstart.contract.names import LONGEST_NAME, canonical_name
from headstart.contract.problems import Problem, short_json
from headstart.contract.schema import Team


def find_breaches(challenge: Challenge, team: Team, key: str, entries: Sequence[Any]) -> Iterator[Problem]:
    """Find what a submission breaks of a challenge's rules.

    Args:
        challenge: The challenge.
        team: The team whose submission it is.
        key: The document's key that its entries are under.
        entries: The submitted models or stimuli, in either form, or whatever stands in their place.

    Returns:
        The problems. Entries without a name that can be compared have none, whatever else is wrong with them.
    """
    rules = challenge.rules(team)
    if rules is None:
        yield untaken(challenge, team, f"/{key}")
    elif isinstance(rules, BlueRules):
        yield from _check_count(rules.count, key, "models", len(entries))
        yield from _check_families(rules, _submitted_names(key, entries))
    else:
        yield from _check_count(rules.count, key, "stimuli", len(entries))
        yield from _check_datasets(rules, key, entries)


def _check_count(count: Count, key: str, things: str, given: int) -> Iterator[Problem]:
    for asked, word, kept in [
        (count.exactly, "exactly", given == count.exactly),
        (count.least, "at least", given >= (count.least or 0)),
        (count.most, "at most", given <= (count.most or given)),
    ]:
        if asked is not None and not kept:
            yield Problem(f"/{key}", "", f"must have {word} {asked} {things} in this challenge, not {given}")


def _submitted_names(key: str, entries: Sequence[Any]) -> dict[str, str]:
    """Give the names of submitted models by their pointers, each model once: that it comes twice is said elsewhere."""
    names: dict[str, tuple[str, str]] = {}
    for index, entry in enumerate(entries):
        place = f"/{key}/{index}"
        name, pointer = (entry.get("model_name"), f"{place}/model_name") if isinstance(entry, dict) else (entry, place)
        if isinstance(name, str) and len(name) <= LONGEST_NAME:
            names.setdefault(canonical_name(name), (pointer, name))
    return dict(names.values())


def _check_families(rules: BlueRules, names: Mapping[str, str]) -> Iterator[Problem]:
    first: dict[str, str] = {}
    counts: dict[str, int] = {}
    for pointer, name in names.items():
        for family in _families_of(name, rules):
            counts[family] = counts.get(family, 0) + 1
            if rules.most_per_family is not None and counts[family] > rules.most_per_family:
                rule = f"is number {counts[family]} of the family {family!r}, of which {rules.most_per_family} may be"
                yield Problem(pointer, short_json(name), f"{rule} in a submission")
            yield from _find_mixtures(rules, family, pointer, name, first)
            first.setdefault(family, pointer)


def _find_mixtures(
    rules: BlueRules, family: str, pointer: str, name: str, first: Mapping[str, str]
) -> Iterator[Problem]:
    for group in rules.unmixed_families:
        for other in group if family in group else ():
            if other != family and other in first:
                rule = f"is of the family {family!r}, which may not be mixed with {other!r} of {first[other]}"
                yield Problem(pointer, short_json(name), rule)


def _families_of(name: str, rules: BlueRules) -> list[str]:
    return [
        family for family, patterns in rules.families.items() if any(fnmatchcase(name, pattern) for pattern in patterns)
    ]


def _check_datasets(rules: RedRules, key: str, entries: Sequence[Any]) -> Iterator[Problem]:
    if rules.datasets is None:
        return
    allowed = set(rules.datasets)
    for index, entry in enumerate(entries):
        dataset = entry.get("dataset_name") if isinstance(entry, dict) else None
        if isinstance(dataset, str) and dataset not in allowed:
            rule = f"is not a dataset of this challenge; it takes {', '.join(rules.datasets)}"
            yield Problem(f"/{key}/{index}/dataset_name", short_json(dataset), rule)
