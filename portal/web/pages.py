"""The pages: overview and rules, forms, submissions, leaderboards, log. They have no scripts."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Form, HTTPException, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from sqlalchemy import select
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.responses import HTMLResponse, RedirectResponse, Response

from headstart.contract.challenge_rules import count_on_day
from headstart.contract.schema import Track
from headstart.contract.submissions import KEYS
from headstart.portal.queue import counts_against_quota
from headstart.portal.submissions import PAGE_LENGTH, rank_teams
from headstart.portal.tables import MAX_ID, SubmissionRow, TeamRow, read_log
from headstart.portal.teams import find_by_token
from headstart.portal.web.api import Before, Number, read_submission, read_submissions
from headstart.portal.web.state import COOKIE, Portal, PortalDependency, Visitor

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
router = APIRouter(default_response_class=HTMLResponse)
LOGIN_SECONDS = 14 * 24 * 3600


def render(request: Request, name: str, team: TeamRow | None, status: int = 200, **context: Any) -> HTMLResponse:
    """Render a page.

    Args:
        request: The request.
        name: Name of the template.
        team: The team that is logged in.
        status: HTTP status code.
        context: Further values of the template.
    """
    portal: Portal = request.app.state.portal
    shared = {"portal": portal, "challenge": portal.challenge, "path": request.url.path}
    return HTMLResponse(TEMPLATES.get_template(name).render(team=team, **shared, **context), status)


@router.get("/")
def show_overview(request: Request, portal: PortalDependency, visitor: Visitor) -> Response:
    """Show the challenge and its rules."""
    with portal.database.reading() as session:
        state = portal.find_state(session)
    return render(request, "overview.html", visitor, state=state, address=portal.address(request))


@router.get("/login")
def show_login(request: Request, visitor: Visitor) -> Response:
    """Show the form that asks for a token."""
    return render(request, "login.html", visitor, wrong=False)


@router.post("/login")
def log_in(request: Request, portal: PortalDependency, token: Annotated[str, Form()] = "") -> Response:
    """Store the token in a cookie that scripts cannot read and other sites cannot use."""
    token = token.strip()
    if find_by_token(portal.database, token) is None:
        return render(request, "login.html", None, 401, wrong=True)
    response, secure = RedirectResponse("/submissions", 303), portal.settings.behind_tls
    response.set_cookie(COOKIE, token, LOGIN_SECONDS, httponly=True, samesite="strict", secure=secure, path="/")
    return response


@router.post("/logout")
def log_out() -> Response:
    """Delete the cookie with the token."""
    response = RedirectResponse("/", 303)
    response.delete_cookie(COOKIE, path="/")
    return response


@router.get("/submissions")
def show_submissions(request: Request, portal: PortalDependency, visitor: Visitor, before: Before = MAX_ID) -> Response:
    """Show the visitor's latest submissions, or those before one of them."""
    if visitor is None:
        return RedirectResponse("/login", 303)
    records = read_submissions(portal, visitor, before)
    return render(request, "submissions.html", visitor, records=records, more=len(records) == PAGE_LENGTH)


@router.get("/submissions/{number}")
def show_submission(request: Request, number: Number, portal: PortalDependency, visitor: Visitor) -> Response:
    """Show one submission."""
    return render(request, "submission.html", visitor, record=read_submission(number, portal, visitor))


@router.get("/leaderboard")
def show_leaderboard(request: Request, portal: PortalDependency, visitor: Visitor) -> Response:
    """Show the leaderboards of both teams of the contract."""
    with portal.database.reading() as session:
        tracks = [track for track in KEYS if portal.challenge.rules(track)]
        boards = {track: rank_teams(session, track) for track in tracks}
    return render(request, "leaderboard.html", visitor, boards=boards)


@router.get("/log")
def show_log(request: Request, portal: PortalDependency, visitor: Visitor) -> Response:
    """Show the log."""
    with portal.database.reading() as session:
        events = read_log(session, visitor)
    return render(request, "log.html", visitor, events=events)


@router.get("/{track}")
def show_form(request: Request, track: Track, portal: PortalDependency, visitor: Visitor) -> Response:
    """Show the form for submissions to a track."""
    return _form(request, portal, track, visitor)


@router.post("/{track}")
async def receive_form(request: Request, track: Track, portal: PortalDependency, visitor: Visitor) -> Response:
    """Submit the document of a form, or only check it."""
    max_fields = len(portal.documents.registry.entries) + 8
    # Browsers send each line break as two bytes, so the text of a document may be up to twice as long.
    max_size = 2 * int(portal.settings.max_submission_bytes) + 1024
    async with request.form(max_files=1, max_fields=max_fields, max_part_size=max_size) as form:
        if visitor is None:
            raise HTTPException(401, "You are no longer logged in. Log in again.")
        upload, pasted = form.get("file"), str(form.get("document", "")).replace("\r\n", "\n")
        uploaded = await upload.read() if isinstance(upload, UploadFile) and upload.filename else None
        picked, is_check = [str(name) for name in form.getlist("models")], form.get("action") == "check"

    entered: dict[str, Any] = {"document": pasted, "picked": picked}
    contents = [pasted.encode()] if pasted.strip() else []
    contents += [] if uploaded is None else [uploaded]
    contents += [json.dumps({KEYS["blue"]: picked}).encode()] if picked else []
    if len(contents) != 1:
        mistake = "Give one document: choose a file, paste its text, or pick models."
        return await run_in_threadpool(_form, request, portal, track, visitor, 400, mistake=mistake, **entered)
    if is_check:
        problems = await portal.check(visitor, track, contents[0])
        # A browser forgets which file was chosen, so the form shows the content of the file as text.
        entered["document"] = contents[0].decode(errors="replace") if uploaded is not None else pasted
        return await run_in_threadpool(_form, request, portal, track, visitor, problems=problems, **entered)
    receipt = await portal.submit(visitor, track, contents[0])
    return RedirectResponse(f"/submissions/{receipt.id}", 303)


def _form(
    request: Request, portal: Portal, track: Track, team: TeamRow | None, status: int = 200, **entered: Any
) -> Response:
    """Show a form with the values that were entered, and the problems of the document if it was checked."""
    rules = portal.challenge.rules(track)
    if rules is None:
        raise HTTPException(404, f"This challenge has no {track.title()} Team.")
    of_team = (SubmissionRow.team_id == (team and team.id), SubmissionRow.track == track, counts_against_quota())
    with portal.database.reading() as session:
        state = portal.find_state(session)
        times = session.scalars(select(SubmissionRow.received).where(*of_team)).all()

    today = count_on_day(portal.challenge, times, datetime.now(UTC))
    context = {"track": track, "rules": rules, "state": state, "earlier": len(times), "today": today, **entered}
    return render(request, "form.html", team, status, **context)
