"""The interface for programs: JSON under `/api` with a team's token as `Authorization: Bearer TOKEN`."""

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Request
from sqlalchemy import text
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, Response

from headstart.contract.problems import ContractError
from headstart.contract.schema import Team as Track
from headstart.portal.submissions import Entry, find_public_score, rank_teams, read_records
from headstart.portal.tables import MAX_ID, SubmissionRow
from headstart.portal.web.responses import list_problems
from headstart.portal.web.security import Caller, Visitor
from headstart.portal.web.state import PortalDependency

router = APIRouter()
Number = Annotated[int, Path(ge=1, le=MAX_ID)]


@router.get("/api/challenge")
def read_rules(portal: PortalDependency) -> dict[str, Any]:
    """Return the challenge's rules, and whether submissions are accepted."""
    return {
        **portal.challenge.model_dump(mode="json"),
        "open": portal.state == "open",
        "models": list(portal.documents.registry.entries),
        "stimuli": len(portal.documents.catalog.stimuli),
        "max_submission_bytes": portal.settings.max_submission_bytes,
    }


@router.get("/api/stimuli")
def read_stimuli(portal: PortalDependency) -> Response:
    """Return the stimuli that the Red Team chooses from, as JSON lines."""
    if portal.challenge.rules("red") is None:
        raise HTTPException(404, "This challenge has no Red Team, so its stimuli are not listed.")
    return FileResponse(portal.documents.catalog.path, media_type="application/jsonl", filename="stimuli.jsonl")


@router.post("/api/validate")
async def validate(request: Request, portal: PortalDependency, caller: Caller) -> dict[str, Any]:
    """Return the problems of a document, without submitting it."""
    try:
        await portal.check(await request.body())
    except ContractError as error:
        return {"valid": False, "problems": list_problems(error)}
    return {"valid": True, "problems": []}


@router.post("/api/submissions")
async def submit_document(request: Request, response: Response, portal: PortalDependency, caller: Caller) -> Entry:
    """Submit the body as a document.

    The status is 201 for a new submission, 200 for one that the caller has submitted before, and 422 for a refused one.
    """
    receipt = await portal.submit(caller, await request.body())
    response.status_code = 201 if receipt.new else 200
    response.headers["Location"] = f"/api/submissions/{receipt.id}"
    return await run_in_threadpool(read_submission, receipt.id, portal, caller)


@router.get("/api/submissions")
def read_submissions(portal: PortalDependency, caller: Caller) -> list[Entry]:
    """Return the caller's submissions, the latest first."""
    with portal.database.reading() as session:
        return read_records(session, portal.documents.bases, SubmissionRow.team_id == caller.id)


@router.get("/api/submissions/{number}")
def read_submission(number: Number, portal: PortalDependency, visitor: Visitor) -> Entry:
    """Return one of a team's own submissions, and the result of its scoring.

    Raises:
        HTTPException: There is no such submission, or it is another team's; the answer is the same.
    """
    conditions = (SubmissionRow.id == number, SubmissionRow.team_id == (visitor and visitor.id))
    with portal.database.reading() as session:
        records = read_records(session, portal.documents.bases, *conditions)
        if not records:
            raise HTTPException(404, "There is no such submission, or it is another team's.")
        return {**records[0], "result": find_public_score(session, number)}


@router.get("/api/leaderboard")
def read_leaderboard(portal: PortalDependency, team: Track) -> dict[str, Any]:
    """Return the leaderboard of a team of the contract, and the number of submissions to be scored again before."""
    with portal.database.reading() as session:
        board = rank_teams(session, portal.documents, team, datetime.now(UTC))
    return {"held_back": board.held_back, "standings": board.standings}


@router.get("/health")
def check_health(portal: PortalDependency) -> dict[str, str]:
    """Check that the server and its database answer: 200, or 503."""
    with portal.database.reading() as session:
        session.execute(text("SELECT 1 FROM teams"))
    return {"status": "ok"}
