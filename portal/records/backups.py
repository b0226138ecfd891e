"""Copies of the database: when the last one was made, for organisers."""

from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from headstart.portal.records.tables import EventRow

_BACKUP = "backup"


def record_backup(session: Session, copy: Path) -> None:
    """Record in the log that the database was copied to a file, or to a schema of PostgreSQL."""
    text = f"The database was copied to {copy}."
    session.add(EventRow(at=datetime.now(UTC), kind=_BACKUP, public=False, text=text))


def find_last_backup(session: Session) -> datetime | None:
    """Return when the portal copied its database the last time."""
    return session.scalar(select(func.max(EventRow.at)).where(EventRow.kind == _BACKUP))
