"""Valid documents, as examples for participants."""

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
from headstart.portal.phases import Phase

# Complicated rules may leave only one choice of very many, which is not searched for.
_MAX_TRIES = 20


def make_example(phase: Phase, track: Track, max_bytes: int) -> bytes | None:
    """Build a valid submission of as few entries as possible, the first ones that the rules allow together.

    Args:
        phase: The phase of the challenge, whose rules it keeps.
        track: Team of the contract.
        max_bytes: The largest size of the document.

    Returns:
        The document, one entry per line; None where no simple choice is valid.
    """
    challenge, registry, catalog = phase.challenge, phase.registry, phase.catalog
    rules = challenge.rules(track)
    if rules is None:
        return None
    count = rules.count.exactly or rules.count.least or MIN_ENTRIES
    for entries in islice(_choices(challenge, track, registry, catalog, count), _MAX_TRIES):
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
    """Whether a submission may have these models together, whatever their number."""
    key = KEYS["blue"]
    return all(problem.pointer == f"/{key}" for problem in find_breaches(challenge, "blue", key, names))
