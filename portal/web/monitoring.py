"""What machines that watch the portal ask for; nothing of it has held-out scores."""

import shutil
from datetime import UTC, datetime, timedelta
from typing import get_args

from fastapi import APIRouter
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session
from starlette.responses import JSONResponse, Response

from headstart.portal.database import UNAVAILABLE
from headstart.portal.settings import Settings
from headstart.portal.submissions import count_submissions
from headstart.portal.tables import ScoringRow, State
from headstart.portal.web.state import PortalDependency

router = APIRouter()
LOW = 2**30
# Without any sign of a process for so long, none is at work.
LATELY = timedelta(minutes=10)
NAN = float("nan")


@router.get("/health")
def check_health(portal: PortalDependency) -> Response:
    """Check that the server and its database answer: 200, also where organisers must look at something, else 503."""
    try:
        portal.database.check_file()
        with portal.database.reading() as session:
            stalled = is_stalled(session, datetime.now(UTC))
    except UNAVAILABLE:
        return JSONResponse({"status": "failing", "warnings": ["The database does not answer, or was replaced."]}, 503)
    warnings = [
        f"The disk of the {name} folder has only {free / 2**20:,.0f} MB of free space."
        for name, free in _free_bytes(portal.settings).items()
        if free < LOW
    ]
    if stalled:
        warnings.append("Submissions are waiting, but no worker is active. Check that one runs, and read its output.")
    return JSONResponse({"status": "ok", "warnings": warnings})


@router.get("/metrics")
def read_metrics(portal: PortalDependency) -> Response:
    """Return metrics in Prometheus's text format."""
    now, registry = datetime.now(UTC), CollectorRegistry()
    try:
        with portal.database.reading() as session:
            states: dict[str, float] | None = dict(count_submissions(session))
            oldest = session.scalar(select(func.min(ScoringRow.queued)).where(ScoringRow.state == "queue"))
            waiting = (now - (oldest or now)).total_seconds()
    except UNAVAILABLE:
        states, waiting = None, NAN

    Gauge("headstart_database_up", "Whether the database answers.", registry=registry).set(states is not None)
    Gauge("headstart_oldest_waiting_seconds", "Age of the queue.", registry=registry).set(waiting)
    submissions = Gauge("headstart_submissions", "Submissions.", ["state"], registry=registry)
    for state in get_args(State):
        submissions.labels(state).set(NAN if states is None else states.get(state, 0))
    free = Gauge("headstart_free_bytes", "Free space on a folder's disk.", ["folder"], registry=registry)
    for folder, size in _free_bytes(portal.settings).items():
        free.labels(folder).set(size)
    return Response(
        generate_latest(registry) + generate_latest(portal.registry), media_type="text/plain; version=0.0.4"
    )


def is_stalled(session: Session, now: datetime) -> bool:
    """Whether a scoring has been due for ten minutes, and no process has begun, prolonged or ended one meanwhile."""
    since = now - LATELY
    waiting = and_(ScoringRow.state == "queue", ScoringRow.queued < since)
    due = or_(waiting, and_(ScoringRow.state == "running", ScoringRow.lease_until < since))
    signs = or_(ScoringRow.started > since, ScoringRow.ended > since, ScoringRow.lease_until > since)
    is_due, has_sign = (session.scalar(select(ScoringRow.id).where(each).limit(1)) for each in (due, signs))
    return is_due is not None and has_sign is None


def _free_bytes(settings: Settings) -> dict[str, int]:
    """Return the free bytes on the disks of the folder of the portal's data and of the cache."""
    folders = {"data": settings.folder.absolute(), "cache": settings.extraction.cache.absolute()}
    return {
        name: shutil.disk_usage(next(each for each in (folder, *folder.parents) if each.exists())).free
        for name, folder in folders.items()
    }
