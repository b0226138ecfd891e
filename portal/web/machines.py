"""What machines that watch the portal ask for."""

from datetime import UTC, datetime

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from headstart.portal.records.database import UNAVAILABLE
from headstart.portal.records.submissions import count_submissions
from headstart.portal.web.state import PortalDependency
from headstart.portal.web.system import find_warnings, read_room, read_work

router = APIRouter()


@router.get("/health")
def check_health(portal: PortalDependency) -> Response:
    """Check that the server and its database answer: 200, also where organisers must look at something, else 503."""
    step = "its file was removed or replaced while it was open"
    try:
        portal.database.check_file()
        step = "it does not answer"
        with portal.database.reading() as session:
            work = read_work(session, datetime.now(UTC))
    except UNAVAILABLE:
        return JSONResponse({"status": "failing", "database": step, "warnings": []}, 503)
    warnings = find_warnings(work, read_room(portal.settings))
    return JSONResponse({"status": "ok", "database": "ok", "warnings": warnings})


@router.get("/metrics")
def read_metrics(portal: PortalDependency) -> Response:
    """Return metrics for organisers in Prometheus's text format."""
    try:
        with portal.database.reading() as session:
            found = count_submissions(session), read_work(session, datetime.now(UTC))
    except UNAVAILABLE:
        found = None
    metrics = portal.metrics.text(found, read_room(portal.settings), datetime.now(UTC))
    return Response(metrics, media_type="text/plain; version=0.0.4")
