"""Copies of the database: when the last one was made, for organisers."""

from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy.orm import Session

from headstart.portal.records.tables import EventRow, FactRow

_BACKUP = "backup"


def record_backup(session: Session, copy: Path) -> None:
    """Record that the database was copied to a file, or to a schema of PostgreSQL."""
    now = datetime.now(UTC)
    session.merge(FactRow(name=_BACKUP, value=now.isoformat()))
    session.add(EventRow(at=now, kind="backup", public=False, text=f"The database was copied to {copy}."))


def find_last_backup(session: Session) -> datetime | None:
    """Return when the portal copied its database the last time."""
    fact = session.get(FactRow, _BACKUP)
    return None if fact is None else datetime.fromisoformat(fact.value)
