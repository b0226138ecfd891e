"""The pages: overview and rules, forms, submissions, leaderboards, log. They have no scripts."""

import json
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Form, HTTPException, Request
from markupsafe import Markup
from sqlalchemy import select
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.responses import HTMLResponse, RedirectResponse, Response

from headstart.contract.challenge_times import count_on_day
from headstart.contract.schema import Team as Track
from headstart.contract.submissions import KEYS
from headstart.portal.intake import counts_against_quota, is_closed
from headstart.portal.submissions import PAGE_LENGTH, Board, find_public_score, read_records
from headstart.portal.tables import SubmissionRow, TeamRow, read_log
from headstart.portal.teams import DURATION, begin_session, end_session
from headstart.portal.web.api import Before, Number, read_visible
from headstart.portal.web.responses import TEMPLATES, local_times, render
from headstart.portal.web.security import COOKIE, Visitor, form_proof, require_own_form
from headstart.portal.web.state import Portal, PortalDependency, client_address

router = APIRouter(default_response_class=HTMLResponse)
Text = Annotated[str, Form()]
MAX_TABLE_MODELS = 30


@router.get("/")
def show_overview(request: Request, portal: PortalDependency, visitor: Visitor) -> Response:
    """Show the challenge and its rules."""
    with portal.database.reading() as session:
        closed = is_closed(session)
    return _page(request, "overview.html", visitor, closed=closed, address=portal.address(request))


@router.get("/login")
def show_login(request: Request, visitor: Visitor) -> Response:
    """Show the form that asks for a token."""
    return _page(request, "login.html", visitor, wrong=False)


@router.post("/login")
def log_in(request: Request, portal: PortalDependency, token: Text = "") -> Response:
    """Begin a session: the browser stores a cookie that no script and no other site can read or use."""
    cookie = begin_session(portal.database, token.strip())
    if cookie is None:
        portal.require_within_limit("mistakes", client_address(request))
        return _page(request, "login.html", None, 401, wrong=True)
    response, seconds = RedirectResponse("/submissions", 303), int(DURATION.total_seconds())
    secure = portal.settings.behind_tls
    response.set_cookie(COOKIE, cookie, seconds, httponly=True, samesite="strict", secure=secure, path="/")
    return response


@router.post("/logout")
def log_out(request: Request, portal: PortalDependency, proof: Text = "") -> Response:
    """End the session."""
    require_own_form(request, proof)
    end_session(portal.database, request.cookies[COOKIE])
    response = RedirectResponse("/", 303)
    response.delete_cookie(COOKIE, path="/")
    return response


@router.get("/submissions")
def show_submissions(request: Request, portal: PortalDependency, visitor: Visitor, before: Before = None) -> Response:
    """Show the visitor's latest submissions, or those before one of them."""
    if visitor is None:
        return RedirectResponse("/login", 303)
    with portal.database.reading() as session:
        records = read_records(session, SubmissionRow.team_id == visitor.id, before=before)
    return _page(request, "submissions.html", visitor, records=records, more=len(records) == PAGE_LENGTH)


@router.get("/submissions/{number}")
def show_submission(request: Request, number: Number, portal: PortalDependency, visitor: Visitor) -> Response:
    """Show one submission."""
    with portal.database.reading() as session:
        record = read_visible(portal, session, number, visitor)
        score = find_public_score(session, number, portal.settings.show_matrix)
    return _page(request, "submission.html", visitor, record=record, score=score, largest_table=MAX_TABLE_MODELS)


@router.get("/leaderboard")
def show_leaderboard(request: Request, portal: PortalDependency, visitor: Visitor) -> Response:
    """Show the leaderboards of both teams of the contract."""
    with portal.database.reading() as session:
        boards = {track: portal.find_board(session, track) for track in KEYS if portal.challenge.rules(track)}
    tables = {track: _table(portal, track, board, visitor) for track, board in boards.items()}
    return _page(request, "leaderboard.html", visitor, boards=boards, tables=tables)


@router.get("/log")
def show_log(request: Request, portal: PortalDependency, visitor: Visitor) -> Response:
    """Show the log."""
    with portal.database.reading() as session:
        events = read_log(session, portal.settings.show_submissions, visitor)
    return _page(request, "log.html", visitor, events=events)


@router.get("/{track}")
def show_form(request: Request, track: Track, portal: PortalDependency, visitor: Visitor) -> Response:
    """Show the form of a team of the contract."""
    return _form(request, portal, track, visitor)


@router.post("/{track}")
async def receive_form(request: Request, track: Track, portal: PortalDependency, visitor: Visitor) -> Response:
    """Submit the document of a form, or only check it."""
    models = list(portal.documents.registry.entries)
    # Browsers write the end of a line as two bytes.
    limits = {"max_files": 1, "max_fields": len(models) + 8}
    async with request.form(**limits, max_part_size=2 * int(portal.settings.max_submission_bytes) + 1024) as form:
        require_own_form(request, str(form.get("proof", "")))
        if visitor is None:
            raise HTTPException(401, "You are no longer logged in. Log in again.")
        upload, pasted = form.get("file"), str(form.get("document", "")).replace("\r\n", "\n")
        uploaded = await upload.read() if isinstance(upload, UploadFile) and upload.filename else None
        picked, is_check = [str(name) for name in form.getlist("models")], form.get("action") == "check"

    given: dict[str, Any] = {"document": pasted, "picked": picked}
    contents = [pasted.encode()] if pasted.strip() else []
    contents += [] if uploaded is None else [uploaded]
    contents += [json.dumps({KEYS["blue"]: picked}).encode()] if picked else []
    if len(contents) != 1:
        mistake = "Give one document: choose a file, paste its text, or pick models."
        return await run_in_threadpool(_form, request, portal, track, visitor, 400, mistake=mistake, **given)
    if is_check:
        problems = await portal.check(request, visitor, track, contents[0])
        # Browsers do not send a file again that they have sent.
        given["document"] = contents[0].decode(errors="replace") if uploaded is not None else pasted
        return await run_in_threadpool(_form, request, portal, track, visitor, problems=problems, **given)
    receipt = await portal.submit(visitor, track, contents[0])
    return RedirectResponse(f"/submissions/{receipt.id}", 303)


def _form(
    request: Request, portal: Portal, track: Track, team: TeamRow | None, status: int = 200, **given: Any
) -> Response:
    """Show a form with what was given, and the problems of the document if it was checked."""
    rules = portal.challenge.rules(track)
    if rules is None:
        raise HTTPException(404, f"This challenge has no {track.title()} Team.")
    own = (SubmissionRow.team_id == (team and team.id), SubmissionRow.track == track, counts_against_quota())
    with portal.database.reading() as session:
        closed = is_closed(session)
        times = session.scalars(select(SubmissionRow.received).where(*own)).all()

    context: dict[str, Any] = {
        "track": track,
        "rules": rules,
        "closed": closed,
        "earlier": len(times),
        "today": count_on_day(portal.challenge, times, datetime.now(UTC)),
        **{"document": "", "picked": [], "problems": None, "mistake": "", **given},
    }
    return _page(request, "form.html", team, status, **context)


def _table(portal: Portal, track: Track, board: Board, team: TeamRow | None) -> Markup:
    """Return the table of a leaderboard, which is rendered once for each change, with the team's own line marked."""
    if track not in portal.tables or portal.tables[track][0] is not board:
        values = {"track": track, "board": board, "epsilon": portal.challenge.score.epsilon}
        text = TEMPLATES.get_template("board.html").render(**values, local=local_times(portal.challenge))
        portal.tables[track] = board, Markup(text)
    own = next((line.submission_id for line in board.standings if team is not None and line.team == team.name), 0)
    row = Markup('<tr id="{}-{}"').format(track, own)
    return portal.tables[track][1].replace(row, row + Markup(' class="own"'), 1)


def _page(request: Request, name: str, team: TeamRow | None, status: int = 200, **context: Any) -> Response:
    return render(request, name, status, team=team, proof=form_proof(request), **context)
