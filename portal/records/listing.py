"""All teams, all submissions and the log, as organisers see them."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import and_, func, not_, or_, select
from sqlalchemy.orm import Session

from headstart.contract.names import canonical_name
from headstart.output.printable import printable
from headstart.portal.records.log import LOG_LINES
from headstart.portal.records.submissions import Record, find_all_records, latest_scoring
from headstart.portal.records.tables import AccountRow, EventRow, ScoringRow, SubmissionRow, TeamRow

_LATEST = or_(latest_scoring("public"), latest_scoring("held_out"))


@dataclass(frozen=True)
class TeamLine:
    """A team.

    Attributes:
        team: The team.
        members: Names of its members who are not shut out.
        submissions: Number of its submissions that were not refused.
    """

    team: TeamRow
    members: Sequence[str]
    submissions: int

    @property
    def state(self) -> str:
        """Whether it takes part, in words."""
        if self.team.revoked is not None:
            return "revoked"
        return "takes part" if self.team.approved is not None else "waits for approval"


def list_all_teams(session: Session) -> list[TeamLine]:
    """Return all teams in the order of their names."""
    members: dict[int | None, list[str]] = {}
    people = select(AccountRow.team_id, AccountRow.name).where(AccountRow.revoked.is_(None)).order_by(AccountRow.id)
    for team_id, name in session.execute(people):
        members.setdefault(team_id, []).append(name)

    counts = select(SubmissionRow.team_id, func.count()).where(SubmissionRow.is_refused.is_(False))
    submissions = dict(session.execute(counts.group_by(SubmissionRow.team_id)).all())
    teams = session.scalars(select(TeamRow).order_by(TeamRow.canonical))
    return [TeamLine(team, members.get(team.id, []), submissions.get(team.id, 0)) for team in teams]


def list_all_submissions(
    session: Session, team: str, state: str, before: int | None
) -> tuple[list[Record], bool, dict[int, str]]:
    """Return submissions of all teams, the latest first.

    Args:
        session: Session of the portal's database.
        team: Only those of the team of this name; empty for all.
        state: Only those of which the public score or the held-out one is in this state; empty for all.
        before: Only those of lower numbers; None for the latest.

    Returns:
        At most 100 submissions, whether there are earlier ones, and by number the errors of their latest scorings.
    """
    conditions = [TeamRow.canonical == canonical_name(printable(team))] if team else []
    if state == "refused":
        conditions.append(SubmissionRow.is_refused.is_(True))
    elif state:
        in_state = select(SubmissionRow.id).join(ScoringRow, _LATEST).where(ScoringRow.state == state)
        conditions += [SubmissionRow.is_refused.is_(False), SubmissionRow.id.in_(in_state.correlate(None))]
    records, more = find_all_records(session, before, True, *conditions)

    numbers = [record.submission.id for record in records]
    errors: dict[int, str] = {}
    found = select(SubmissionRow.id, ScoringRow.kind, ScoringRow.error).join(ScoringRow, _LATEST)
    for number, kind, error in session.execute(found.where(SubmissionRow.id.in_(numbers), ScoringRow.error != "")):
        prefix = "" if kind == "public" else "held-out score: "
        errors[number] = " ".join(filter(None, (errors.get(number), f"{prefix}{error}")))
    return records, more, errors


def list_events(session: Session) -> Sequence[EventRow]:
    """Return the latest 100 lines of the log, the latest first; those of held-out scores are left out.

    An organiser may be a member of a team, too.
    """
    held_out = and_(EventRow.kind == "scored", EventRow.text.contains(": held-out scored"))
    return session.scalars(select(EventRow).where(not_(held_out)).order_by(EventRow.id.desc()).limit(LOG_LINES)).all()
