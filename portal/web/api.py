"""The interface for programs: JSON under `/api`, with a team's token as `Authorization: Bearer TOKEN`."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, HTTPException, Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, JSONResponse, Response

from headstart.contract.schema import Team as Track
from headstart.contract.versions import Version, json_schemas
from headstart.output.errors import UserError
from headstart.portal.records.database import UNAVAILABLE
from headstart.portal.records.log import event_as_json, read_public_log
from headstart.portal.records.submissions import Record, count_submissions, find_document, find_record, find_records
from headstart.portal.records.tables import MAX_ID, AccountRow
from headstart.portal.records.terms import accept_terms
from headstart.portal.web.sessions import Caller, Reader, Visitor
from headstart.portal.web.state import Portal, PortalDependency
from headstart.portal.web.submitting import find_problems, new_key, submit
from headstart.portal.work.intake import is_frozen

router = APIRouter()
Number = Annotated[int, Path(ge=1, le=MAX_ID)]
Before = Annotated[int | None, Query(ge=1, le=MAX_ID)]
# Public parts of score.json. Its digests would reveal changes of held-out documents, its timings the work done.
PUBLIC_KEYS = (
    "contract_version",
    "team",
    "n_models",
    "n_stimuli",
    "mean_cka_biased",
    "mean_cka_debiased",
    "mean_cka_calibrated",
)


@router.get("/api/challenge")
def read_rules(portal: PortalDependency) -> dict[str, Any]:
    """Return the challenge's rules, and whether submissions are accepted."""
    with portal.database.reading() as session:
        is_open = portal.is_open() and not is_frozen(session)
    phase = portal.phase
    return {
        **phase.challenge.model_dump(mode="json"),
        "open": is_open,
        "phases": [each.name for each in portal.phases],
        "models": list(phase.registry.entries),
        "stimuli": len(phase.catalog.stimuli),
        "max_submission_bytes": portal.settings.max_submission_bytes,
    }


@router.get("/api/schemas/{name}")
def read_schema(name: str, portal: PortalDependency, version: Version | None = None) -> dict[str, Any]:
    """Return the JSON Schema of a document, such as `blue_submission`, by default of the newest accepted version."""
    schemas = json_schemas(version or portal.phase.challenge.contract_versions[-1])
    if name not in schemas:
        raise HTTPException(404, f"There is no such schema; there are {', '.join(schemas)}.")
    return schemas[name]


@router.get("/api/examples/{team}")
def read_example(team: Track, portal: PortalDependency) -> Response:
    """Return a valid document of a team of the contract."""
    example = portal.examples[portal.phase.name, team]
    if example is None:
        raise HTTPException(404, "There is no example of such a document.")
    return Response(example, media_type="application/json")


@router.get("/api/stimuli")
def read_stimuli(portal: PortalDependency) -> Response:
    """Return the stimuli that the Red Team chooses from, as JSON lines."""
    if portal.phase.challenge.rules("red") is None:
        raise HTTPException(404, "Nothing is chosen of this challenge's stimuli.")
    return FileResponse(portal.phase.catalog.path, media_type="application/jsonl", filename="stimuli.jsonl")


@router.post("/api/terms")
def accept(portal: PortalDependency, caller: Caller, version: Annotated[str, Body(embed=True)]) -> dict[str, str]:
    """Accept a version of the terms of the current phase, which is needed before the first submission."""
    try:
        accept_terms(portal.database, caller.id, portal.challenge, version, datetime.now(UTC))
    except UserError as error:
        raise HTTPException(409, str(error)) from error
    return {"phase": portal.challenge.name, "accepted": version}


@router.post("/api/validate")
async def validate(request: Request, portal: PortalDependency, visitor: Visitor, team: Track) -> dict[str, Any]:
    """Return all problems of a document of a team of the contract, without submitting it."""
    problems = await find_problems(portal, request, visitor, team, await request.body())
    return {"valid": not problems, "problems": problems}


@router.post("/api/submissions")
async def submit_document(
    request: Request,
    portal: PortalDependency,
    caller: Caller,
    team: Track,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> Response:
    """Submit the body as a document of a team of the contract.

    The same `Idempotency-Key` always returns the same submission: 201 for a new one, 200 for a known one, 422 for a
    refused one.
    """
    receipt = await submit(portal, caller, team, await request.body(), idempotency_key or new_key())
    status = 422 if receipt.refused else 201 if receipt.new else 200

    def read() -> dict[str, Any]:
        with portal.database.reading() as session:
            record = find_record(session, receipt.id)
        assert record is not None
        return record.as_json()

    return JSONResponse(await run_in_threadpool(read), status, {"Location": f"/api/submissions/{receipt.id}"})


@router.get("/api/submissions")
def read_submissions(portal: PortalDependency, caller: Caller, before: Before = None) -> list[dict[str, Any]]:
    """Return the caller's latest submissions, the latest first, or those before one of them."""
    with portal.database.reading() as session:
        records, _ = find_records(session, caller.team_id, before, with_problems=True)
    return [record.as_json() for record in records]


@router.get("/api/submissions/{number}")
def read_submission(number: Number, portal: PortalDependency, reader: Reader) -> dict[str, Any]:
    """Return one submission: the caller's own, or a scored one where the organisers show them."""
    with portal.database.reading() as session:
        record = visible_record(portal, find_record(session, number), reader)
        document, _ = find_document(session, number)
    submission = record.as_json()
    if document is not None and record.state == "scored":
        submission["result"] = public_score(document, portal.settings.show_matrix)
    return submission


@router.get("/api/leaderboard")
def read_leaderboard(
    portal: PortalDependency, response: Response, team: Track, phase: str | None = None
) -> list[dict[str, Any]]:
    """Return the leaderboard of a team of the contract, by default that of the current phase.

    The header `Headstart-Held-Back` has the number of submissions that must be scored again before they are in it.
    """
    with portal.database.reading() as session:
        board = portal.find_board(session, portal.find_phase(phase), team)
    response.headers["Headstart-Held-Back"] = str(board.held_back)
    return [each.as_json(board.held_out) for each in board.standings]


@router.get("/api/log")
def read_events(portal: PortalDependency) -> list[dict[str, Any]]:
    """Return the latest lines of the log, the latest first."""
    with portal.database.reading() as session:
        return [event_as_json(event) for event in read_public_log(session)]


@router.get("/health")
def check_health(portal: PortalDependency) -> dict[str, str]:
    """Check that the server and its database answer."""
    portal.database.check_file()
    with portal.database.reading() as session:
        is_frozen(session)
    return {"status": "ok"}


@router.get("/metrics")
def read_metrics(portal: PortalDependency) -> Response:
    """Return metrics for organisers in Prometheus's text format."""
    try:
        with portal.database.reading() as session:
            states = count_submissions(session)
    except UNAVAILABLE:
        states = None
    return Response(portal.metrics.text(states), media_type="text/plain; version=0.0.4")


def visible_record(portal: Portal, record: Record | None, visitor: AccountRow | None) -> Record:
    """Return a submission if the visitor may see it.

    Raises:
        HTTPException: There is no such submission, or the visitor may not see it.
    """
    if record is not None:
        is_own = visitor is not None and record.submission.team_id == visitor.team_id
        if is_own or (portal.settings.show_submissions and record.state == "scored"):
            return record
    raise HTTPException(404, "There is no such submission, or it is another team's.")


def public_score(document: Mapping[str, Any], with_matrix: bool) -> dict[str, Any]:
    """Return the public part of the content of `score.json`."""
    keys = (*PUBLIC_KEYS, "pairwise") if with_matrix else PUBLIC_KEYS
    return {key: document[key] for key in keys if key in document}
