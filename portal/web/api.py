"""The interface for programs: JSON under `/api`, with a team's token as `Authorization: Bearer TOKEN`."""

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Query, Request
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, JSONResponse, Response

from headstart.contract.schema import Team as Track
from headstart.contract.versions import Version, json_schemas
from headstart.portal.intake import is_closed
from headstart.portal.log import event_as_json, read_log
from headstart.portal.submissions import Record, find_public_score, find_record, read_records
from headstart.portal.tables import MAX_ID, SubmissionRow, TeamRow
from headstart.portal.web.security import Caller, Visitor
from headstart.portal.web.state import Portal, PortalDependency

router = APIRouter(prefix="/api")
Number = Annotated[int, Path(ge=1, le=MAX_ID)]
Before = Annotated[int | None, Query(ge=1, le=MAX_ID)]


@router.get("/challenge")
def read_rules(portal: PortalDependency) -> dict[str, Any]:
    """Return the challenge's rules, and whether submissions are accepted."""
    with portal.database.reading() as session:
        closed = is_closed(session) or portal.is_over or portal.is_ahead
    return {
        **portal.challenge.model_dump(mode="json"),
        "open": not closed,
        "models": list(portal.documents.registry.entries),
        "stimuli": len(portal.documents.catalog.stimuli),
        "max_submission_bytes": portal.settings.max_submission_bytes,
    }


@router.get("/schemas/{name}")
def read_schema(name: str, portal: PortalDependency, version: Version | None = None) -> dict[str, Any]:
    """Return the JSON Schema of a document, such as `blue_submission`, by default of the newest accepted version."""
    schemas = json_schemas(version or portal.challenge.contract_versions[-1])
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
async def validate(request: Request, portal: PortalDependency, visitor: Visitor, team: Track) -> dict[str, Any]:
    """Return all problems of a document of a team of the contract, without submitting it."""
    problems = await portal.check(request, visitor, team, await request.body())
    return {"valid": not problems, "problems": problems}


@router.post("/submissions")
async def submit_document(request: Request, portal: PortalDependency, caller: Caller, team: Track) -> Response:
    """Submit the body as a document of a team of the contract.

    The status is 201 for a new submission, 200 for one that the caller has submitted before, and 422 for a refused one.
    """
    receipt = await portal.submit(caller, team, await request.body())

    def read() -> dict[str, Any]:
        with portal.database.reading() as session:
            return read_visible(portal, session, receipt.id, caller).as_json()

    status = 422 if receipt.problems else 201 if receipt.new else 200
    return JSONResponse(await run_in_threadpool(read), status, {"Location": f"/api/submissions/{receipt.id}"})


@router.get("/submissions")
def read_submissions(portal: PortalDependency, caller: Caller, before: Before = None) -> list[dict[str, Any]]:
    """Return the caller's latest submissions, the latest first, or those before one of them."""
    with portal.database.reading() as session:
        records = read_records(session, SubmissionRow.team_id == caller.id, before=before)
    return [record.as_json() for record in records]


@router.get("/submissions/{number}")
def read_submission(number: Number, portal: PortalDependency, visitor: Visitor) -> dict[str, Any]:
    """Return one submission: the caller's own, or a scored one where these are shown."""
    with portal.database.reading() as session:
        record = read_visible(portal, session, number, visitor)
        result = find_public_score(session, number, portal.settings.show_matrix)
    return {**record.as_json(), **({} if result is None else {"result": result})}


@router.get("/leaderboard")
def read_leaderboard(portal: PortalDependency, team: Track) -> dict[str, Any]:
    """Return the leaderboard of a team of the contract, and the number of submissions to be scored again before."""
    with portal.database.reading() as session:
        board = portal.find_board(session, team)
    return {"held_back": board.held_back, "standings": [each.as_json() for each in board.standings]}


@router.get("/log")
def read_events(portal: PortalDependency, visitor: Visitor) -> list[dict[str, Any]]:
    """Return the latest lines of the log, the latest first."""
    with portal.database.reading() as session:
        events = read_log(session, portal.settings.show_submissions, visitor)
    return [event_as_json(event) for event in events]


def read_visible(portal: Portal, session: Session, number: int, team: TeamRow | None) -> Record:
    """Return the submission of a number if a visitor may see it: the team's own, or a scored one where these are shown.

    Raises:
        HTTPException: There is no such submission, or the visitor may not see it; the answer is the same.
    """
    record = find_record(session, number)
    if record is not None:
        is_own = team is not None and record.submission.team_id == team.id
        is_shown = portal.settings.show_submissions and record.state == "scored" and not record.submission.hidden
        if is_own or is_shown:
            return record
    raise HTTPException(404, "There is no such submission, or it is another team's.")
