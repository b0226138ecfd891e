"""What happened to a submission, for its team."""

from datetime import datetime

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from headstart.portal.records.log import name_of
from headstart.portal.records.submissions import Record
from headstart.portal.records.tables import EventRow, ScoringRow

# Lines that are not public, and whose texts are written for the submission's team, too.
SAID_TO_TEAM = ("started", "put back", "rescored")


def read_timeline(session: Session, record: Record) -> list[tuple[datetime, str]]:
    """Return the times and texts of what happened, the earliest first.

    It has nothing of held-out scores, and of an error the note that its team may read.
    """
    number, name = record.submission.id, name_of(record.submission, record.team)
    said = or_(EventRow.public.is_(True), EventRow.kind.in_(SAID_TO_TEAM))
    events = select(EventRow.at, EventRow.text).where(EventRow.submission_id == number, said).order_by(EventRow.id)
    ends = select(ScoringRow.ended, ScoringRow.note).where(
        ScoringRow.submission_id == number, ScoringRow.kind == "public", ScoringRow.state.in_(["failed", "refused"])
    )
    lines = [(at, text.removeprefix(f"{name}: ")) for at, text in session.execute(events)]
    lines += [(at, note) for at, note in session.execute(ends) if at is not None]
    return sorted(lines, key=lambda line: line[0])
