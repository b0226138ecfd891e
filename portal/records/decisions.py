"""What teams and organisers decide about submissions. Each decision is committed together with its line of the log."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from headstart.contract.challenge import Challenge
from headstart.output.errors import UserError
from headstart.portal.records.database import Database
from headstart.portal.records.log import check_line, log_event, name_of
from headstart.portal.records.tables import MAX_ID, ScoringRow, State, SubmissionRow, TeamRow


@dataclass(frozen=True)
class _Case:
    """A submission that is decided about, in a transaction."""

    session: Session
    submission: SubmissionRow
    name: str
    now: datetime

    def log(self, kind: str, what: str) -> None:
        number, team_id = self.submission.id, self.submission.team_id
        log_event(self.session, self.now, kind, f"{self.name}: {what}", team_id, number, public=True)

    def cancel(self, note: str, *states: State) -> int:
        """Cancel the scorings in some states; a worker can no longer finish them."""
        pending = (ScoringRow.submission_id == self.submission.id, ScoringRow.state.in_(states))
        values = {"state": "cancelled", "ended": self.now, "note": note, "lease_until": None}
        changed = self.session.execute(update(ScoringRow).where(*pending).values(**values))
        return int(changed.rowcount)  # type: ignore[attr-defined] # of an UPDATE


@contextmanager
def _decide(database: Database, number: int) -> Iterator[_Case]:
    with database.writing() as session:
        submission = session.get(SubmissionRow, number) if 0 < number <= MAX_ID else None
        if submission is None:
            raise UserError(f"number: there is no submission {number}")
        # Decisions about one team's submissions come one after the other. This lock lets a scoring end meanwhile.
        locked = select(TeamRow.name).where(TeamRow.id == submission.team_id).with_for_update(key_share=True)
        team = session.scalars(locked).one()
        session.refresh(submission)
        if submission.is_refused:
            raise UserError(f"number: submission {number} was refused, so there is nothing to decide")
        yield _Case(session, submission, name_of(submission, team), datetime.now(UTC))


def withdraw(database: Database, challenge: Challenge, number: int) -> None:
    """Withdraw a submission for its team. Waiting scorings are cancelled and do not count against quotas.

    One that runs goes on, and counts: a team could end the process that scores again and again, at no cost.

    Args:
        database: The portal's database.
        challenge: The rules of the submission's phase.
        number: The submission.

    Raises:
        UserError: The deadline has passed, or the submission was refused.
    """
    with _decide(database, number) as case:
        _require_time(challenge, case.now)
        if case.submission.withdrawn is None:
            case.cancel("The team withdrew it.", "queue")
            case.submission.withdrawn, case.submission.chosen = case.now, False
            case.log("withdrawn", "withdrawn by its team.")


def choose(database: Database, challenge: Challenge, number: int) -> None:
    """Choose a submission for its team. It replaces the team's earlier choice in this phase and team of the contract.

    Arguments as for `withdraw`.

    Raises:
        UserError: The rules let nobody choose, the deadline has passed, or the submission can be on no leaderboard.
    """
    with _decide(database, number) as case:
        submission = case.submission
        rules = challenge.rules(submission.track)
        if rules is None or rules.standing != "chosen":
            raise UserError("standing: this challenge does not let teams choose a submission")
        _require_time(challenge, case.now)
        if submission.withdrawn is not None or submission.disqualified is not None:
            raise UserError(f"number: submission {number} was withdrawn or disqualified; choose another")
        if not submission.chosen:
            alike = SubmissionRow.phase == submission.phase, SubmissionRow.track == submission.track
            others = update(SubmissionRow).where(SubmissionRow.team_id == submission.team_id, *alike)
            case.session.execute(others.values(chosen=False))
            submission.chosen = True
            case.log("chosen", "chosen by its team.")


def disqualify(database: Database, number: int, reason: str) -> str:
    """Remove a submission from the leaderboard, which shows the reason.

    Args:
        database: The portal's database.
        number: The submission.
        reason: A line for everybody; it replaces an earlier one.

    Returns:
        The submission in words.

    Raises:
        UserError: There is no such submission, it was refused, or the reason is not one line of text.
    """
    with _decide(database, number) as case:
        case.submission.disqualified = check_line("reason", reason)
        case.log("disqualified", f"disqualified: {case.submission.disqualified}")
        return case.name


def reinstate(database: Database, number: int) -> str:
    """Restore a disqualified submission on the leaderboard; arguments, result and errors as for `disqualify`."""
    with _decide(database, number) as case:
        if case.submission.disqualified is None:
            raise UserError(f"number: submission {number} is not disqualified")
        case.submission.disqualified = None
        case.log("reinstated", "reinstated.")
        return case.name


def cancel(database: Database, number: int, reason: str) -> str:
    """Cancel the waiting and running scorings of a submission. Without a score, it does not count against quotas.

    Arguments, result and errors as for `disqualify`; the reason is for the team.
    """
    with _decide(database, number) as case:
        note = f"The organisers cancelled its scoring: {check_line('reason', reason)}"
        if not case.cancel(note, "queue", "running"):
            raise UserError(f"number: submission {number} is neither waiting nor running; choose another")
        case.log("cancelled", f"its scoring was cancelled: {reason.strip()}")
        return case.name


def _require_time(challenge: Challenge, now: datetime) -> None:
    if challenge.is_over(now):
        raise UserError("submission: the deadline has passed, so it can no longer change")
