"""The state of the system: what waits, whether a process is at it, the room on the disks, the database."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from headstart.portal.records.tables import ScoringRow
from headstart.portal.records.waiting import is_stalled
from headstart.portal.settings import Settings
from headstart.portal.work.queue import LEASE

LOW = 2**30
_SIZE = {
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    "postgresql": "SELECT pg_database_size(current_database())",
}


@dataclass(frozen=True)
class Work:
    """What waits to be scored, and who scores.

    Attributes:
        oldest: When the scoring was queued that has waited longest; None where nothing waits.
        is_stalled: Whether something waits and nothing is at work.
        workers: The processes that scored, and when they were last seen at it; the latest first.
    """

    oldest: datetime | None
    is_stalled: bool
    workers: Sequence[tuple[str, datetime]]

    @property
    def seen(self) -> datetime | None:
        """When a process that scores was last seen at a scoring."""
        return self.workers[0][1] if self.workers else None


def read_work(session: Session, now: datetime) -> Work:
    """Read what waits to be scored, and who scores."""
    oldest = session.scalar(select(func.min(ScoringRow.queued)).where(ScoringRow.state == "queue"))
    latest = func.max(ScoringRow.started), func.max(ScoringRow.ended), func.max(ScoringRow.lease_until)
    by_worker = select(ScoringRow.worker, *latest).group_by(ScoringRow.worker)
    workers = [
        # A lease is prolonged while its process lives.
        (str(name), max(filter(None, (started, ended, lease and lease - LEASE))))
        for name, started, ended, lease in session.execute(by_worker.where(ScoringRow.worker.is_not(None)))
    ]
    return Work(oldest, is_stalled(session, now), sorted(workers, key=lambda each: each[1], reverse=True))


def read_room(settings: Settings) -> dict[str, int]:
    """Return the free bytes on the disks of the folder of the portal's data and of the cache."""
    folders = {"data": settings.folder.absolute(), "cache": settings.extraction.cache.absolute()}
    return {
        name: shutil.disk_usage(next(each for each in (folder, *folder.parents) if each.exists())).free
        for name, folder in folders.items()
    }


def read_size(session: Session) -> tuple[int, str]:
    """Return the size of the database in bytes, and the revision of its tables."""
    size = session.scalar(text(_SIZE[session.get_bind().dialect.name]))
    return int(size), str(session.scalar(text("SELECT version_num FROM alembic_version")))


def find_warnings(work: Work, room: dict[str, int]) -> list[str]:
    """Return what organisers must look at, although the portal serves, in sentences."""
    warnings = [
        f"The disk of the {name} folder has only {free / 2**20:,.0f} MB of free space."
        for name, free in room.items()
        if free < LOW
    ]
    if work.is_stalled:
        warnings.append("Submissions are waiting, but no worker is active. Check that one runs, and read its output.")
    return warnings
