"""Breaches of a challenge's own rules by a submission, beside those of the contract, and by its time."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from headstart.contract.challenge import Challenge, Count, RedRules
from headstart.contract.problems import Problem, short_json
from headstart.contract.schema import Track


def find_breaches(challenge: Challenge, team: Track, key: str, entries: Sequence[Any]) -> Iterator[Problem]:
    """Find the breaches of a challenge's rules by a submission.

    Args:
        challenge: The challenge.
        team: The team of the submission.
        key: The document's key that its entries are under.
        entries: The submitted models or stimuli in either form, also invalid ones.

    Yields:
        The problems. Entries without a name that can be compared have none, even if they are invalid otherwise.
    """
    rules = challenge.rules(team)
    if rules is None:
        yield _missing_team(challenge, team, f"/{key}")
    else:
        yield from _check_count(rules.count, key, "models" if team == "blue" else "stimuli", len(entries))
        if isinstance(rules, RedRules) and rules.datasets is not None:
            yield from _check_datasets(rules.datasets, key, entries)


def _check_count(count: Count, key: str, things: str, number: int) -> Iterator[Problem]:
    for limit, word, is_kept in [
        (count.exactly, "exactly", number == count.exactly),
        (count.least, "at least", number >= (count.least or 0)),
        (count.most, "at most", number <= (count.most or number)),
    ]:
        if limit is not None and not is_kept:
            yield Problem(f"/{key}", "", f"must have {word} {limit} {things} in this challenge, not {number}")


def _check_datasets(allowed: Sequence[str], key: str, entries: Sequence[Any]) -> Iterator[Problem]:
    for index, entry in enumerate(entries):
        dataset = entry.get("dataset_name") if isinstance(entry, dict) else None
        if isinstance(dataset, str) and dataset not in allowed:
            rule = f"is not a data set of this challenge; choose from {', '.join(allowed)}"
            yield Problem(f"/{key}/{index}/dataset_name", short_json(dataset), rule)


def find_untimely(challenge: Challenge, team: Track, earlier: Sequence[datetime], now: datetime) -> list[Problem]:
    """Return the problems of a submission's time: opening, deadline and quotas of the participant.

    Args:
        challenge: The challenge.
        team: The team of the submission.
        earlier: Times of the participant's earlier submissions for that team that count, in any order.
        now: Time of this submission.

    Returns:
        The problems of the document as a whole. Times must have a time zone; messages use the challenge's.
    """
    rules = challenge.rules(team)
    if rules is None:
        return [_missing_team(challenge, team, "")]

    local, reasons = now.astimezone(challenge.time_zone), []
    if challenge.opens is not None and challenge.is_ahead(now):
        reasons.append(f"submissions open at {challenge.opens.astimezone(challenge.time_zone).isoformat()}")
    if challenge.deadline is not None and challenge.is_over(now):
        deadline = challenge.deadline.astimezone(challenge.time_zone)
        reasons.append(f"the deadline was {deadline.isoformat()}, and it is {local.isoformat()}")

    if rules.submissions is not None and len(earlier) >= rules.submissions:
        reasons.append(f"all of the {rules.submissions} allowed submissions were made")
    if rules.submissions_per_day is not None and count_on_day(challenge, earlier, now) >= rules.submissions_per_day:
        reasons.append(
            f"all of the {rules.submissions_per_day} submissions allowed on {local.date()} "
            f"({challenge.time_zone}) were made; the next day begins at midnight"
        )
    return [Problem("", "", reason) for reason in reasons]


def count_on_day(challenge: Challenge, times: Sequence[datetime], now: datetime) -> int:
    """Count the times on the same day as another time; days begin at midnight in the challenge's time zone."""
    day = now.astimezone(challenge.time_zone).date()
    return sum(time.astimezone(challenge.time_zone).date() == day for time in times)


def _missing_team(challenge: Challenge, team: Track, pointer: str) -> Problem:
    """Return the problem of a submission of a team that a challenge does not have."""
    return Problem(pointer, "", f"the challenge {challenge.name!r} has no {team.title()} Team")
