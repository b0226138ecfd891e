"""Documents that would be taken, so that participants see what one looks like."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from headstart.contract.challenge import Challenge
from headstart.contract.challenge_breaches import find_breaches
from headstart.contract.documents import Catalog, Registry
from headstart.contract.problems import ContractError
from headstart.contract.schema import MIN_ENTRIES
from headstart.contract.schema import Team as Track
from headstart.contract.submissions import KEYS, check_submission

# Rules may leave no choice but one of very many.
_MOST_TRIES = 20


def make_example(
    challenge: Challenge, track: Track, registry: Registry, catalog: Catalog, max_bytes: int
) -> bytes | None:
    """Make a valid submission of as few entries as may be, the first ones that the rules allow beside one another.

    Args:
        challenge: The challenge, whose rules it keeps.
        track: Team of the contract that it is of.
        registry: The models that there are.
        catalog: The stimuli that there are.
        max_bytes: The largest size that it may have.

    Returns:
        The document, an entry a line; None where no simple choice is valid.
    """
    rules = challenge.rules(track)
    if rules is None:
        return None
    count = rules.count.exactly or rules.count.least or MIN_ENTRIES
    for entries in islice(_choices(challenge, track, registry, catalog, count), _MOST_TRIES):
        lines = ",\n".join(f"  {json.dumps(entry)}" for entry in entries)
        content = f'{{"{KEYS[track]}": [\n{lines}\n]}}\n'.encode()
        try:
            check_submission(content, "example", registry, catalog, track, challenge)
        except ContractError:
            continue
        if len(content) <= max_bytes:
            return content
    return None


def _choices(
    challenge: Challenge, track: Track, registry: Registry, catalog: Catalog, count: int
) -> Iterator[list[Any]]:
    if track == "red":
        rules = challenge.teams.red
        allowed = None if rules is None or rules.datasets is None else set(rules.datasets)
        pairs = (pair for pair in catalog.table.pairs() if allowed is None or pair[0] in allowed)
        names = ("dataset_name", "image_identifier")
        yield [dict(zip(names, pair, strict=True)) for pair in islice(pairs, count)]
        return
    models = list(registry.entries)
    for first in range(len(models)):
        chosen: list[str] = []
        for name in models[first:] + models[:first]:
            if len(chosen) < count and _agrees(challenge, [*chosen, name]):
                chosen.append(name)
        yield chosen


def _agrees(challenge: Challenge, names: list[str]) -> bool:
    """Tell whether models may stand beside one another, however many there are to be in the end."""
    key = KEYS["blue"]
    return all(problem.pointer == f"/{key}" for problem in find_breaches(challenge, "blue", key, names))
