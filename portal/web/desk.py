"""The organisers' desk: the state of the system, all teams and submissions, and the commands as forms."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Depends, HTTPException, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, Response

from headstart.output.errors import UserError
from headstart.portal.commands.command import Desk
from headstart.portal.records.backups import find_last_backup
from headstart.portal.records.basis import find_held_back, read_bases
from headstart.portal.records.listing import list_all_submissions, list_all_teams, list_events
from headstart.portal.records.submissions import count_scorings
from headstart.portal.records.tables import AccountRow, State
from headstart.portal.web.api import Before
from headstart.portal.web.command_forms import FORMS, SUBMISSION_FORMS, TEAM_FORMS, Field, make_fields, run_form
from headstart.portal.web.responses import render
from headstart.portal.web.sessions import Visitor, require_own_form
from headstart.portal.web.state import PortalDependency
from headstart.portal.web.system import find_warnings, read_room, read_size, read_work

router = APIRouter(prefix="/desk", default_response_class=HTMLResponse)


def require_organiser(visitor: Visitor) -> AccountRow:
    """Return the account of an organiser.

    Raises:
        HTTPException: The visitor is none.
    """
    if visitor is None:
        raise HTTPException(303, "Log in as an organiser.", {"Location": "/login"})
    if not visitor.is_organiser:
        raise HTTPException(404, "There is no such page.")
    return visitor


def find_words(words: str) -> str:
    """Return the words of a command by its address.

    Raises:
        HTTPException: No command has such a form.
    """
    found = words.replace("/", " ")
    if found not in FORMS:
        raise HTTPException(404, "There is no such command.")
    return found


Organiser = Annotated[AccountRow, Depends(require_organiser)]
Words = Annotated[str, Depends(find_words)]


@router.get("")
def show_system(request: Request, portal: PortalDependency, organiser: Organiser) -> Response:
    """Show the state of the system, and the commands."""
    now, room = datetime.now(UTC), read_room(portal.settings)
    with portal.database.reading() as session:
        bases, work, (size, revision) = read_bases(session), read_work(session, now), read_size(session)
        held_back, backup, events = len(find_held_back(session, bases)), find_last_backup(session), list_events(session)
    is_current = bases == {key: basis for phase in portal.phases for key, basis in phase.bases().items()}
    warnings, counts = find_warnings(work, room), count_scorings(portal.database)
    context: dict[str, Any] = {"is_current": is_current, "held_back": held_back, "backup": backup, "events": events}
    context |= {"size": size, "revision": revision, "room": room, "work": work, "warnings": warnings, "counts": counts}
    return render(request, "desk.html", organiser, forms=FORMS, **context)


@router.get("/teams")
def show_teams(request: Request, portal: PortalDependency, organiser: Organiser) -> Response:
    """Show all teams."""
    with portal.database.reading() as session:
        lines = list_all_teams(session)
    return render(request, "desk_teams.html", organiser, lines=lines, forms=TEAM_FORMS)


@router.get("/submissions")
def show_all_submissions(
    request: Request,
    portal: PortalDependency,
    organiser: Organiser,
    team: str = "",
    state: State | Literal[""] = "",
    before: Before = None,
) -> Response:
    """Show submissions of all teams."""
    with portal.database.reading() as session:
        records, more, errors = list_all_submissions(session, team, state, before)
    context: dict[str, Any] = {"records": records, "more": more, "errors": errors, "states": get_args(State)}
    context |= {"team_name": team, "chosen_state": state, "forms": SUBMISSION_FORMS}
    return render(request, "desk_submissions.html", organiser, **context)


@router.get("/run/{words:path}")
def show_command(request: Request, organiser: Organiser, words: Words) -> Response:
    """Show the form of a command, with the values of the address in it."""
    return _show(request, organiser, words, make_fields(words, request.query_params))


@router.post("/run/{words:path}")
async def run_command(request: Request, portal: PortalDependency, organiser: Organiser, words: Words) -> Response:
    """Run a command."""
    async with request.form(max_files=0, max_fields=len(FORMS[words].arguments) + 1) as form:
        values = {name: value.replace("\r\n", "\n") for name, value in form.items() if isinstance(value, str)}
    require_own_form(request, values.get("proof", ""))
    desk = Desk(portal.settings, portal.database, organiser.name)
    # The files may have changed since the server read them.
    desk.phases = portal.phases
    return await run_in_threadpool(_run, request, organiser, words, desk, values)


def _run(request: Request, organiser: AccountRow, words: str, desk: Desk, values: Mapping[str, str]) -> Response:
    fields = make_fields(words, values)
    try:
        done = run_form(words, desk, fields)
    except UserError as error:
        return _show(request, organiser, words, fields, 400, mistake=str(error))
    # The form is empty, so that nothing is done twice.
    return _show(request, organiser, words, make_fields(words, {}), done=done)


def _show(
    request: Request, organiser: AccountRow, words: str, fields: list[Field], status: int = 200, **said: str
) -> Response:
    context: dict[str, Any] = {"done": "", "mistake": "", **said, "words": words, "fields": fields}
    return render(request, "command.html", organiser, status=status, help=FORMS[words].run.__doc__, **context)
