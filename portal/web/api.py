"""The interface for programs: JSON under `/api`, with a team's token as `Authorization: Bearer TOKEN`."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, HTTPException, Path, Query, Request
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, JSONResponse, Response

from headstart.contract.schema import Team as Track
from headstart.contract.versions import Version, json_schemas
from headstart.output.errors import UserError
from headstart.portal.records.log import event_as_json, read_public_log
from headstart.portal.records.submissions import Record, find_all_records, find_document, find_record
from headstart.portal.records.tables import MAX_ID, AccountRow, EventRow, SubmissionRow
from headstart.portal.records.terms import accept_terms
from headstart.portal.records.timeline import read_timeline
from headstart.portal.web.sessions import Caller, Visitor
from headstart.portal.web.state import Portal, PortalDependency
from headstart.portal.web.submitting import check_document, new_key, submit
from headstart.portal.work.intake import SameDocumentError, is_frozen

router = APIRouter()
Number = Annotated[int, Path(ge=1, le=MAX_ID)]
Before = Annotated[int | None, Query(ge=1, le=MAX_ID)]
# What `/api/challenge` has of each phase.
PHASE_KEYS = {"name", "title", "opens", "deadline"}
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
        frozen = is_frozen(session)
    phase, now = portal.phase, datetime.now(UTC)
    return {
        **phase.challenge.model_dump(mode="json"),
        "open": not (frozen or phase.challenge.is_over(now) or phase.challenge.is_ahead(now)),
        "phases": [each.challenge.model_dump(mode="json", include=PHASE_KEYS) for each in portal.phases],
        "models": list(phase.registry.entries),
        "stimuli": len(phase.catalog.stimuli),
        "max_submission_bytes": portal.settings.max_submission_bytes,
    }


@router.get("/api/schemas/{name}")
def read_schema(name: str, portal: PortalDependency, version: Version | None = None) -> dict[str, Any]:
    """Return the JSON Schema of a document, such as `blue_submission`, by default of the newest accepted version."""
    schemas = json_schemas(version or portal.phase.challenge.contract_versions[-1])
    if name not in schemas:
        raise HTTPException(404, f"There is no such schema. Schemas: {', '.join(schemas)}.")
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
        raise HTTPException(404, "This challenge has no Red Team, so its stimuli are not listed.")
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
    """Return all problems of a document of a team of the contract, without submitting it.

    `same_as` is the number of the visitor's submission of the same document, of which `remark` says the score.
    """
    problems, same = await check_document(portal, request, visitor, team, await request.body())
    remarks = {"same_as": same and same.submission.id, "remark": same.remark if same else ""}
    return {"valid": not problems, "problems": problems, **remarks}


@router.post("/api/submissions")
async def submit_document(
    request: Request,
    portal: PortalDependency,
    caller: Caller,
    team: Track,
    again: bool = False,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> Response:
    """Submit the body as a document of a team of the contract.

    The same `Idempotency-Key` always returns the same submission: 201 for a new one, 200 for a known one, 422 for a
    refused one. With another key, the same document is submitted twice only with `again`: 409 names the first.
    """
    try:
        receipt = await submit(portal, caller, team, await request.body(), idempotency_key or new_key(), again)
    except SameDocumentError as error:
        raise HTTPException(409, f"{error} Add the parameter again=true to submit it.") from error
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
        records, _ = find_all_records(session, before, True, SubmissionRow.team_id == caller.team_id)
    return [record.as_json() for record in records]


@router.get("/api/submissions/{number}")
def read_submission(number: Number, portal: PortalDependency, visitor: Visitor) -> dict[str, Any]:
    """Return one submission: the caller's own with what happened to it, or a scored one where these are shown."""
    with portal.database.reading() as session:
        record = read_visible(portal, session, number, visitor)
        document, _ = find_document(session, number)
        timeline = read_timeline(session, record) if is_insider(record.submission, visitor) else []
    submission = {**record.as_json(), "log": [{"time": at.isoformat(), "text": text} for at, text in timeline]}
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
def read_events(portal: PortalDependency, visitor: Visitor) -> list[dict[str, Any]]:
    """Return the latest lines of the log, the latest first."""
    return [event_as_json(event) for event in visible_log(portal, visitor)]


def is_own(submission: SubmissionRow, visitor: AccountRow | None) -> bool:
    """Whether a visitor is a member of a submission's team."""
    return visitor is not None and submission.team_id == visitor.team_id


def is_insider(submission: SubmissionRow, visitor: AccountRow | None) -> bool:
    """Whether a visitor may see everything of a submission but a held-out score: its team, and organisers."""
    return visitor is not None and (visitor.is_organiser or is_own(submission, visitor))


def no_submission() -> HTTPException:
    """Return the one answer about submissions that do not exist, and about others'."""
    return HTTPException(404, "There is no such submission, or it is another team's.")


def read_visible(portal: Portal, session: Session, number: int, visitor: AccountRow | None) -> Record:
    """Return the submission of a number if the visitor may see it.

    Raises:
        HTTPException: There is no such submission, or the visitor may not see it.
    """
    record = find_record(session, number)
    if record is not None:
        submission = record.submission
        is_hidden = submission.withdrawn is not None or submission.disqualified is not None
        is_shown = portal.settings.show_submissions and record.state == "scored" and not is_hidden
        if is_insider(submission, visitor) or is_shown:
            return record
    raise no_submission()


def visible_log(portal: Portal, visitor: AccountRow | None) -> Sequence[EventRow]:
    """Return the latest lines of the log that a visitor may see."""
    shown = portal.settings.show_submissions or (visitor is not None and visitor.is_organiser)
    with portal.database.reading() as session:
        return read_public_log(session, shown, visitor.team_id if visitor else None)


def public_score(document: Mapping[str, Any], with_matrix: bool) -> dict[str, Any]:
    """Return the public part of the content of `score.json`."""
    keys = (*PUBLIC_KEYS, "pairwise") if with_matrix else PUBLIC_KEYS
    return {key: document[key] for key in keys if key in document}
