"""The pages: overview and rules, forms, submissions, leaderboards, log. They work without scripts."""

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, HTTPException, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.responses import HTMLResponse, RedirectResponse, Response

from headstart.contract.challenge_times import count_on_day
from headstart.contract.schema import Team as Track
from headstart.contract.submissions import KEYS
from headstart.portal.records.log import read_announcements
from headstart.portal.records.quotas import counted_times
from headstart.portal.records.submissions import find_all_records, find_document, find_heatmap
from headstart.portal.records.tables import AccountRow, SubmissionRow
from headstart.portal.records.terms import accept_terms, missing_terms
from headstart.portal.records.timeline import read_timeline
from headstart.portal.records.waiting import is_stalled
from headstart.portal.web.api import Before, Number, is_insider, is_own, public_score, read_visible, visible_log
from headstart.portal.web.responses import render
from headstart.portal.web.sessions import Visitor, require_own_form
from headstart.portal.web.state import Portal, PortalDependency
from headstart.portal.web.submitting import check_document, key_of_form, new_key, submit
from headstart.portal.web.template_files import TEMPLATES
from headstart.portal.work.intake import SameDocumentError, is_frozen

router = APIRouter(default_response_class=HTMLResponse)
MAX_SHOWN_PROBLEMS = 200
MAX_TABLE_MODELS = 30
FORMS: dict[Track, str] = {
    "blue": '{"models": ["NAME", "NAME"]}',
    "red": '{"differentiating_images": [\n  {"dataset_name": "NAME", "image_identifier": "PATH"}, ...\n]}',
}


@router.get("/")
def show_overview(request: Request, portal: PortalDependency, visitor: Visitor) -> Response:
    """Show the challenge and its rules."""
    with portal.database.reading() as session:
        state = {"frozen": is_frozen(session), "stalled": is_stalled(session, datetime.now(UTC))}
        news = read_announcements(session)
    return render(request, "overview.html", visitor, address=portal.address(request), announcements=news, **state)


@router.get("/submissions")
def show_submissions(request: Request, portal: PortalDependency, visitor: Visitor, before: Before = None) -> Response:
    """Show the visitor's latest submissions, or those before one of them."""
    if visitor is None:
        return RedirectResponse("/login", 303)
    with portal.database.reading() as session:
        records, more = find_all_records(session, before, False, SubmissionRow.team_id == visitor.team_id)
    return render(request, "submissions.html", visitor, records=records, more=more, latest=before is None)


@router.get("/submissions/{number}")
def show_submission(request: Request, number: Number, portal: PortalDependency, visitor: Visitor) -> Response:
    """Show one submission."""
    with portal.database.reading() as session:
        record = read_visible(portal, session, number, visitor)
        document, has_heatmap = find_document(session, number)
        timeline = read_timeline(session, record) if is_insider(record.submission, visitor) else []
    with_matrix, is_scored = portal.settings.show_matrix, record.state == "scored"
    phase = next((each for each in portal.phases if each.name == record.submission.phase), None)
    is_over = phase is None or phase.challenge.is_over(datetime.now(UTC))
    context: dict[str, Any] = {
        "record": record,
        "timeline": timeline,
        "is_own": is_own(record.submission, visitor),
        "rules": None if phase is None or is_over else phase.challenge.rules(record.submission.track),
        "score": public_score(document, with_matrix) if document and is_scored else None,
        "earlier": document["score"] if document and not is_scored else None,
        "pictured": has_heatmap and with_matrix,
        "shown_problems": MAX_SHOWN_PROBLEMS,
        "largest_table": MAX_TABLE_MODELS,
    }
    return render(request, "submission.html", visitor, **context)


@router.get("/submissions/{number}/heatmap.png")
def show_heatmap(number: Number, portal: PortalDependency, visitor: Visitor) -> Response:
    """Show the similarity of all pairs of models as a picture."""
    with portal.database.reading() as session:
        read_visible(portal, session, number, visitor)
        picture = find_heatmap(session, number) if portal.settings.show_matrix else None
    if picture is None:
        raise HTTPException(404, "There is no such picture.")
    return Response(picture, media_type="image/png")


@router.get("/leaderboard")
def show_leaderboard(
    request: Request, portal: PortalDependency, visitor: Visitor, phase: str | None = None
) -> Response:
    """Show the leaderboards of both teams of the contract, by default those of the current phase."""
    shown, boards = portal.find_phase(phase), {}
    name = visitor.team.name if visitor and visitor.team else None
    with portal.database.reading() as session:
        for track in KEYS:
            if shown.challenge.rules(track) is not None:
                boards[track] = portal.find_board(session, shown, track)
    return render(request, "leaderboard.html", visitor, boards=boards, phase=shown, own=name)


@router.get("/log")
def show_log(request: Request, portal: PortalDependency, visitor: Visitor) -> Response:
    """Show the log."""
    return render(request, "log.html", visitor, events=visible_log(portal, visitor))


@router.get("/log.atom")
def show_feed(request: Request, portal: PortalDependency) -> Response:
    """Show the log as an Atom feed (RFC 4287)."""
    feed = TEMPLATES.get_template("log.atom").render(
        challenge=portal.challenge, address=portal.address(request), events=visible_log(portal, None)
    )
    return Response(feed, media_type="application/atom+xml")


@router.get("/{track}")
def show_form(
    request: Request, track: Track, portal: PortalDependency, visitor: Visitor, example: bool = False
) -> Response:
    """Show the form of a team of the contract, empty or with an example in it."""
    filled = (portal.examples[portal.phase.name, track] or b"").decode() if example else ""
    return _form(request, portal, track, visitor, filled)


@router.post("/{track}")
async def receive_form(request: Request, track: Track, portal: PortalDependency, visitor: Visitor) -> Response:
    """Submit the document of a form, or only check it."""
    # Browsers write the end of a line as two bytes.
    max_part_size = 2 * int(portal.settings.max_submission_bytes) + 1024
    async with request.form(max_files=1, max_fields=8, max_part_size=max_part_size) as form:
        require_own_form(request, str(form.get("proof", "")))
        if visitor is None:
            raise HTTPException(401, "You are no longer logged in. Log in again.")
        # The text is checked with one byte per end of a line, while the user edits it and here.
        upload, pasted = form.get("file"), str(form.get("document", "")).replace("\r\n", "\n")
        file = upload if isinstance(upload, UploadFile) and upload.filename else None
        uploaded = b"" if file is None else await file.read()
        nonce, action = str(form.get("key", "")), form.get("action")
        accepted, phase = str(form.get("terms", "")), form.get("phase", portal.phase.name)

    if bool(uploaded) == bool(pasted.strip()):
        is_empty = file is not None and not uploaded
        mistake = "The file is empty." if is_empty else "Choose a file or paste a document, not both."
        return await run_in_threadpool(_form, request, portal, track, visitor, pasted, mistake=mistake, status=400)

    content = uploaded or pasted.encode()
    text = content.decode(errors="replace")
    if action == "check":
        problems, same = await check_document(portal, request, visitor, track, content)
        remark = same.remark if same else ""
        return await run_in_threadpool(_form, request, portal, track, visitor, text, problems, remark)
    if phase != portal.phase.name:
        mistake = f"The phase has ended. Submit again to enter the document in {portal.challenge.title}."
        return await run_in_threadpool(_form, request, portal, track, visitor, text, mistake=mistake, status=400)
    if not await run_in_threadpool(_accept, portal, visitor, accepted):
        mistake = "Read and accept the terms first."
        return await run_in_threadpool(_form, request, portal, track, visitor, text, mistake=mistake, status=400)
    try:
        receipt = await submit(portal, visitor, track, content, key_of_form(nonce, content), action == "again")
    except SameDocumentError as error:
        return await run_in_threadpool(_form, request, portal, track, visitor, text, mistake=str(error), status=409)
    return RedirectResponse(f"/submissions/{receipt.id}", 303)


def _accept(portal: Portal, account: AccountRow, version: str) -> bool:
    """Record that the terms are accepted, if a version of them was, and return whether nothing is missing."""
    challenge = portal.challenge
    if challenge.terms is not None and version == challenge.terms.version:
        accept_terms(portal.database, account.id, challenge, version, datetime.now(UTC))
    with portal.database.reading() as session:
        return missing_terms(session, account.id, challenge) is None


def _form(
    request: Request,
    portal: Portal,
    track: Track,
    account: AccountRow | None,
    document: str = "",
    problems: list[dict[str, str]] | None = None,
    remark: str = "",
    mistake: str = "",
    status: int = 200,
) -> Response:
    """Show a form with the problems of its document; None for a document that was not checked."""
    rules = portal.challenge.rules(track)
    if rules is None:
        raise HTTPException(404, f"This challenge has no {track.title()} Team.")
    with portal.database.reading() as session:
        frozen = is_frozen(session)
        team_id = None if account is None else account.team_id
        earlier = [] if team_id is None else counted_times(session, team_id, portal.phase.name, track)
        terms = None if account is None else missing_terms(session, account.id, portal.challenge)

    context: dict[str, Any] = {
        "track": track,
        "rules": rules,
        "frozen": frozen,
        "terms": terms,
        "document": document,
        "problems": problems,
        "remark": remark,
        "mistake": mistake,
        "is_again": status == 409,
        "key": new_key(),
        "form": FORMS[track],
        "earlier": len(earlier),
        "today": count_on_day(portal.challenge, earlier, datetime.now(UTC)),
        "shown_problems": MAX_SHOWN_PROBLEMS,
    }
    return render(request, "form.html", account, status=status, **context)
