"""What a team decides about its own submissions, on pages and by programs: withdraw, choose; and its documents."""

from typing import Annotated, Literal

from fastapi import APIRouter, Form, HTTPException, Request
from sqlalchemy.orm import undefer
from starlette.responses import RedirectResponse, Response

from headstart.output.errors import UserError
from headstart.portal.records.decisions import choose, withdraw
from headstart.portal.records.submissions import Record, find_record
from headstart.portal.records.tables import AccountRow, SubmissionRow
from headstart.portal.web.api import Number, is_insider, is_own, no_submission
from headstart.portal.web.responses import render
from headstart.portal.web.sessions import Caller, Visitor, require_own_form
from headstart.portal.web.state import Portal, PortalDependency

router = APIRouter()
Decision = Literal["withdraw", "choose"]
DECISIONS = {"withdraw": withdraw, "choose": choose}


@router.post("/api/submissions/{number}/{decision}")
def decide(number: Number, decision: Decision, portal: PortalDependency, caller: Caller) -> dict[str, object]:
    """Withdraw or choose a submission, until the deadline of its phase."""
    _decide(portal, caller, number, decision)
    return _own_record(portal, caller, number).as_json()


@router.get("/submissions/{number}/withdraw")
def ask_to_withdraw(request: Request, number: Number, portal: PortalDependency, visitor: Visitor) -> Response:
    """Ask whether a submission is to be withdrawn."""
    return render(request, "withdraw.html", visitor, record=_own_record(portal, visitor, number))


@router.post("/submissions/{number}/{decision}")
def decide_on_page(
    request: Request,
    number: Number,
    decision: Decision,
    portal: PortalDependency,
    visitor: Visitor,
    proof: Annotated[str, Form()] = "",
) -> Response:
    """Withdraw or choose a submission, and show it."""
    require_own_form(request, proof)
    _decide(portal, visitor, number, decision)
    return RedirectResponse(f"/submissions/{number}", 303)


@router.get("/api/submissions/{number}/document.json")
@router.get("/submissions/{number}/document.json")
def read_document(number: Number, portal: PortalDependency, visitor: Visitor) -> Response:
    """Return the document of a submission as it was submitted, to its team and to organisers."""
    with portal.database.reading() as session:
        submission = session.get(SubmissionRow, number, options=[undefer(SubmissionRow.content)])
    if submission is None or not is_insider(submission, visitor):
        raise no_submission()
    if submission.content is None:
        raise HTTPException(404, "It was refused on arrival. Only the problems of such documents are kept.")
    disposition = f'attachment; filename="submission_{number}.json"'
    return Response(submission.content, media_type="application/json", headers={"Content-Disposition": disposition})


def _decide(portal: Portal, account: AccountRow | None, number: int, decision: Decision) -> None:
    record = _own_record(portal, account, number)
    phase = portal.find_phase(record.submission.phase)
    try:
        DECISIONS[decision](portal.database, phase.challenge, number)
    except UserError as error:
        raise HTTPException(409, str(error)) from error


def _own_record(portal: Portal, account: AccountRow | None, number: int) -> Record:
    with portal.database.reading() as session:
        record = find_record(session, number)
    if record is None or not is_own(record.submission, account):
        raise no_submission()
    return record
