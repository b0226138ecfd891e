"""The interface for programs: JSON under `/api` with a team's token as `Authorization: Bearer TOKEN`; monitoring."""

import shutil
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, get_args

from fastapi import APIRouter, HTTPException, Path, Query, Request
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, JSONResponse, Response

from headstart.contract.schema import Track
from headstart.contract.versions import json_schemas
from headstart.portal.database import UNAVAILABLE
from headstart.portal.settings import Settings
from headstart.portal.submissions import Entry, count_submissions, rank_teams, read_records, read_result
from headstart.portal.tables import MAX_ID, State, SubmissionRow, event_as_json, read_log
from headstart.portal.web.state import Caller, PortalDependency, Visitor

router, monitoring = APIRouter(prefix="/api"), APIRouter()
Number = Annotated[int, Path(ge=1, le=MAX_ID)]
Before = Annotated[int, Query(ge=1, le=MAX_ID)]
LOW = 2**30
# Without any sign of a process for so long, none is at work.
LATELY = timedelta(minutes=10)


@router.get("/challenge")
def read_rules(portal: PortalDependency) -> dict[str, Any]:
    """Return the challenge's rules, and whether submissions are accepted."""
    with portal.database.reading() as session:
        state = portal.find_state(session)
    return {
        **portal.challenge.model_dump(mode="json"),
        "open": state == "open",
        "models": list(portal.documents.registry.entries),
        "stimuli": len(portal.documents.catalog.stimuli),
        "max_submission_bytes": portal.settings.max_submission_bytes,
    }


@router.get("/schemas/{name}")
def read_schema(name: str, portal: PortalDependency) -> dict[str, Any]:
    """Return the JSON Schema of a document, such as `blue_submission`, of the newest accepted version."""
    schemas = json_schemas(portal.challenge.contract_versions[-1])
    if name not in schemas:
        raise HTTPException(404, f"There is no such schema. Schemas: {', '.join(schemas)}.")
    return schemas[name]


@router.get("/stimuli")
def read_stimuli(portal: PortalDependency) -> Response:
    """Return the stimuli that the Red Team chooses from, as JSON lines."""
    if portal.challenge.rules("red") is None:
        raise HTTPException(404, "This challenge has no Red Team, so its stimuli are not listed.")
    return FileResponse(portal.documents.catalog.path, media_type="application/jsonl", filename="stimuli.jsonl")


@router.post("/validate")
async def validate(request: Request, portal: PortalDependency, caller: Caller, team: Track) -> dict[str, Any]:
    """Return all problems of a document of a team of the contract, without submitting it."""
    problems = await portal.check(caller, team, await request.body())
    return {"valid": not problems, "problems": problems}


@router.post("/submissions")
async def submit_document(
    request: Request, response: Response, portal: PortalDependency, caller: Caller, team: Track
) -> Entry:
    """Submit the body as a document of a team of the contract.

    The status is 201 for a new submission, 200 for one that the caller has submitted before, and 422 for a refused one.
    """
    receipt = await portal.submit(caller, team, await request.body())
    record = await run_in_threadpool(read_submission, receipt.id, portal, caller)
    response.status_code = 422 if record["state"] == "refused" else 201 if receipt.new else 200
    response.headers["Location"] = f"/api/submissions/{receipt.id}"
    return record


@router.get("/submissions")
def read_submissions(portal: PortalDependency, caller: Caller, before: Before = MAX_ID) -> list[Entry]:
    """Return the caller's latest submissions, the latest first, or those before one of them."""
    with portal.database.reading() as session:
        return read_records(session, SubmissionRow.team_id == caller.id, SubmissionRow.id < before)


@router.get("/submissions/{number}")
def read_submission(number: Number, portal: PortalDependency, visitor: Visitor) -> Entry:
    """Return one of a team's own submissions, and the result of its scoring.

    Raises:
        HTTPException: There is no such submission, or it is another team's; the answer is the same.
    """
    with portal.database.reading() as session:
        records = read_records(session, SubmissionRow.id == number, SubmissionRow.team_id == (visitor and visitor.id))
        if not records:
            raise HTTPException(404, "There is no such submission, or it is another team's.")
        return {**records[0], "result": read_result(session, number)}


@router.get("/leaderboard")
def read_leaderboard(portal: PortalDependency, team: Track) -> dict[str, Any]:
    """Return the leaderboard of a team of the contract, and the number of submissions to be scored again before."""
    with portal.database.reading() as session:
        board = rank_teams(session, team)
    return {"held_back": board.held_back, "standings": board.standings}


@router.get("/log")
def read_events(portal: PortalDependency, visitor: Visitor) -> list[dict[str, Any]]:
    """Return the latest lines of the log, the latest first."""
    with portal.database.reading() as session:
        events = read_log(session, visitor)
    return [event_as_json(event) for event in events]


@monitoring.get("/health")
def check_health(portal: PortalDependency) -> Response:
    """Check that the server and its database answer: 200, also where organisers must look at something, else 503."""
    try:
        portal.database.check_file()
        with portal.database.reading() as session:
            stalled = is_stalled(session, datetime.now(UTC))
    except UNAVAILABLE:
        return JSONResponse({"status": "failing", "warnings": ["The database does not answer, or was removed."]}, 503)
    warnings = [
        f"The disk of the {name} folder has only {free / 2**20:,.0f} MB of free space."
        for name, free in _free_bytes(portal.settings).items()
        if free < LOW
    ]
    if stalled:
        warnings.append("Submissions are waiting, but no worker is active. Check that one runs, and read its output.")
    return JSONResponse({"status": "ok", "warnings": warnings})


@monitoring.get("/metrics")
def read_metrics(portal: PortalDependency) -> Response:
    """Return metrics in Prometheus's text format."""
    states, waiting = dict[str, float](), float("nan")
    try:
        with portal.database.reading() as session:
            oldest = session.scalar(select(func.min(SubmissionRow.queued)).where(SubmissionRow.state == "queue"))
            states = {**dict.fromkeys(get_args(State), 0), **count_submissions(session)}
        waiting = (datetime.now(UTC) - oldest).total_seconds() if oldest else 0
    except UNAVAILABLE:
        pass

    registry = CollectorRegistry()
    Gauge("headstart_database_up", "Whether the database answers.", registry=registry).set(bool(states))
    Gauge("headstart_oldest_waiting_seconds", "Age of the queue.", registry=registry).set(waiting)
    submissions = Gauge("headstart_submissions", "Submissions.", ["state"], registry=registry)
    free = Gauge("headstart_free_bytes", "Free space on a folder's disk.", ["folder"], registry=registry)
    for gauge, values in ((submissions, states), (free, _free_bytes(portal.settings))):
        for label, value in values.items():
            gauge.labels(label).set(value)
    text = generate_latest(registry) + generate_latest(portal.registry)
    return Response(text, media_type="text/plain; version=0.0.4")


def is_stalled(session: Session, now: datetime) -> bool:
    """Return whether a scoring has been due for ten minutes, and no process has worked on one meanwhile."""
    since = now - LATELY
    waiting = and_(SubmissionRow.state == "queue", SubmissionRow.queued < since)
    due = or_(waiting, and_(SubmissionRow.state == "running", SubmissionRow.lease_until < since))
    signs = or_(SubmissionRow.ended > since, SubmissionRow.lease_until > since)
    is_due, has_sign = (
        session.scalar(select(SubmissionRow.id).where(condition).limit(1)) for condition in (due, signs)
    )
    return is_due is not None and has_sign is None


def _free_bytes(settings: Settings) -> dict[str, int]:
    """Return the free bytes on the disks of the folder of the portal's data and of the cache."""
    folders = {"data": settings.folder.absolute(), "cache": settings.extraction.cache.absolute()}
    return {
        name: shutil.disk_usage(next(existing for existing in (folder, *folder.parents) if existing.exists())).free
        for name, folder in folders.items()
    }
