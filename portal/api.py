"""The interface for programs: JSON under `/api`, with a team's token as `Authorization: Bearer TOKEN`."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, HTTPException, Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, JSONResponse, Response

from headstart.contract.schema import Team as Track
from headstart.contract.versions import Version, json_schemas
from headstart.portal.accounts import Team
from headstart.portal.database import AWAY
from headstart.portal.intake import is_frozen
from headstart.portal.metrics import read_states
from headstart.portal.published import publish_event, publish_record, publish_score, publish_standing
from headstart.portal.records import Record, find_document, find_record, find_records, read_log
from headstart.portal.sessions import Caller, Visitor
from headstart.portal.state import Portal, PortalDependency
from headstart.portal.submitting import find_problems, new_key, submit

router = APIRouter()
# What PostgreSQL's numbers of rows can be.
Number = Annotated[int, Path(ge=1, lt=2**31)]
Before = Annotated[int | None, Query(ge=1, lt=2**31)]


@router.get("/api/challenge")
def read_rules(portal: PortalDependency) -> dict[str, Any]:
    """Give the challenge's rules, and whether submissions are taken in."""
    with portal.database.reading() as session:
        open_now = not portal.is_over() and not is_frozen(session)
    return {
        **portal.challenge.model_dump(mode="json"),
        "open": open_now,
        "models": list(portal.models),
        "stimuli": portal.stimuli,
        "max_submission_bytes": portal.settings.max_submission_bytes,
    }


@router.get("/api/schemas/{name}")
def read_schema(name: str, portal: PortalDependency, version: Version | None = None) -> dict[str, Any]:
    """Give the JSON Schema of a document, such as `blue_submission`, by default of the newest version that is taken."""
    schemas = json_schemas(version or portal.challenge.contract_versions[-1])
    if name not in schemas:
        raise HTTPException(404, f"There is no such schema; there are {', '.join(schemas)}.")
    return schemas[name]


@router.get("/api/examples/{team}")
def read_example(team: Track, portal: PortalDependency) -> Response:
    """Give a document of a team of the contract that would be taken."""
    example = portal.examples[team]
    if example is None:
        raise HTTPException(404, "There is no example of such a document.")
    return Response(example, media_type="application/json")


@router.get("/api/stimuli")
def read_stimuli(portal: PortalDependency) -> Response:
    """Give the stimuli that the Red Team chooses from, a line of JSON each."""
    if portal.challenge.rules("red") is None:
        raise HTTPException(404, "Nothing is chosen of this challenge's stimuli.")
    return FileResponse(portal.catalog_file, media_type="application/jsonl", filename="stimuli.jsonl")


@router.post("/api/validate")
async def validate(request: Request, portal: PortalDependency, team: Track) -> dict[str, Any]:
    """Name everything that is wrong with a document of a team of the contract, without handing it in."""
    problems = await find_problems(portal, request, team, await request.body())
    return {"valid": not problems, "problems": problems}


@router.post("/api/submissions")
async def hand_in(
    request: Request,
    portal: PortalDependency,
    caller: Caller,
    team: Track,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> Response:
    """Hand in the body as a submission of a team of the contract.

    The same `Idempotency-Key` sent again gives the same submission: 201 where it is new, 200 where it is there, 422
    where it is refused.
    """
    receipt = await submit(portal, caller, team, await request.body(), idempotency_key or new_key())
    status = 422 if receipt.refused else 201 if receipt.new else 200
    return await _answer(portal, receipt.id, status)


@router.get("/api/submissions")
def read_submissions(portal: PortalDependency, caller: Caller, before: Before = None) -> list[dict[str, Any]]:
    """Give the caller's latest submissions, the latest first, or those before one of them."""
    with portal.database.reading() as session:
        records, _ = find_records(session, caller.id, before, with_problems=True)
    return [publish_record(record) for record in records]


@router.get("/api/submissions/{number}")
def read_submission(number: Number, portal: PortalDependency, visitor: Visitor) -> dict[str, Any]:
    """Give one submission: the caller's own, or a scored one where the organisers show them."""
    with portal.database.reading() as session:
        record = visible_record(portal, find_record(session, number), visitor)
        found = find_document(session, number)
    shown = publish_record(record)
    if found is not None and record.state == "scored":
        shown["result"] = publish_score(found[0], portal.settings.show_matrix)
    return shown


@router.get("/api/leaderboard")
def read_leaderboard(portal: PortalDependency, team: Track) -> list[dict[str, Any]]:
    """Give the leaderboard of a team of the contract."""
    shown = portal.shows_held_out(team)
    with portal.database.reading() as session:
        return [publish_standing(each, shown) for each in portal.leaderboard.standings(session, team, shown)]


@router.get("/api/log")
def read_events(portal: PortalDependency) -> list[dict[str, Any]]:
    """Give the latest lines of the log, the latest first."""
    with portal.database.reading() as session:
        return [publish_event(event) for event in read_log(session)]


@router.get("/health")
def check_health(portal: PortalDependency) -> dict[str, str]:
    """Tell that the server and its database answer."""
    with portal.database.reading() as session:
        is_frozen(session)
    return {"status": "ok"}


@router.get("/metrics")
def read_metrics(portal: PortalDependency) -> Response:
    """Give what an organiser watches, in Prometheus's text format."""
    try:
        states = read_states(portal.database)
    except AWAY:
        states = None
    return Response(portal.metrics.text(states), media_type="text/plain; version=0.0.4")


def visible_record(portal: Portal, record: Record | None, visitor: Team | None) -> Record:
    """Give a submission to whoever may see it; to others there is none.

    Raises:
        HTTPException: There is none.
    """
    if record is not None and (
        (visitor is not None and record.team == visitor.name)
        or (portal.settings.show_submissions and record.state == "scored")
    ):
        return record
    raise HTTPException(404, "There is no such submission, or it is another team's.")


async def _answer(portal: Portal, number: Number, status: int) -> Response:
    def read() -> dict[str, Any]:
        with portal.database.reading() as session:
            record = find_record(session, number)
        assert record is not None
        return publish_record(record)

    return JSONResponse(await run_in_threadpool(read), status, {"Location": f"/api/submissions/{number}"})
