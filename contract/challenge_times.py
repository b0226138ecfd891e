"""Opening, deadline and quotas of a challenge, as functions of a given time."""

from collections.abc import Sequence
from datetime import datetime

from headstart.contract.challenge import Challenge, missing_team
from headstart.contract.problems import Problem
from headstart.contract.schema import Team


def find_untimely(challenge: Challenge, team: Team, earlier: Sequence[datetime], now: datetime) -> list[Problem]:
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
        return [missing_team(challenge, team, "")]

    local, reasons = now.astimezone(challenge.zone), []
    if challenge.opens is not None and challenge.is_ahead(now):
        reasons.append(f"submissions open at {challenge.opens.astimezone(challenge.zone).isoformat()}")
    if challenge.deadline is not None and challenge.is_over(now):
        deadline = challenge.deadline.astimezone(challenge.zone)
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
    day = now.astimezone(challenge.zone).date()
    return sum(time.astimezone(challenge.zone).date() == day for time in times)
