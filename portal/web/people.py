"""Pages about people: logging in and out, joining by invitation, lost tokens, and the members of a team."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Form, HTTPException, Request
from sqlalchemy import or_, select
from starlette.responses import HTMLResponse, RedirectResponse, Response

from headstart.output.errors import UserError
from headstart.portal.records import accounts
from headstart.portal.records.invitations import DURATION, find_invitation, invite, use_invitation
from headstart.portal.records.sessions import begin_session, end_session
from headstart.portal.records.tables import MAX_ID, AccountRow, InvitationRow
from headstart.portal.web.responses import render
from headstart.portal.web.sessions import COOKIE, Visitor, require_own_form, set_cookie
from headstart.portal.web.state import Portal, PortalDependency
from headstart.portal.web.submitting import WAIT, client_address

router = APIRouter(default_response_class=HTMLResponse)
Text = Annotated[str, Form()]
Number = Annotated[int, Form(ge=0, le=MAX_ID)]


@router.get("/login")
@router.get("/recover")
def show_entrance(request: Request, visitor: Visitor) -> Response:
    """Show the form that asks for a token, or for a recovery code."""
    return render(request, f"{request.url.path.strip('/')}.html", visitor, wrong=False)


@router.post("/login")
def log_in(request: Request, portal: PortalDependency, token: Text = "") -> Response:
    """Begin a session."""
    account = accounts.find_account(portal.database, token.strip())
    if account is None:
        _count_mistake(request, portal)
        return render(request, "login.html", None, status=401, wrong=True)
    try:
        with portal.database.writing() as session:
            cookie = begin_session(session, datetime.now(UTC), account)
    except UserError as error:
        raise HTTPException(401, str(error)) from error
    response = RedirectResponse("/submissions", 303)
    set_cookie(response, cookie, portal.settings)
    return response


@router.post("/logout")
def log_out(request: Request, portal: PortalDependency, proof: Text = "") -> Response:
    """End the session."""
    require_own_form(request, proof)
    end_session(portal.database, request.cookies[COOKIE])
    response = RedirectResponse("/", 303)
    response.delete_cookie(COOKIE, path="/")
    return response


@router.post("/recover")
def recover_token(request: Request, portal: PortalDependency, code: Text = "") -> Response:
    """Replace a lost token by the recovery code, and begin a session."""
    # Right codes count, too, because each attempt locks the database for a moment.
    _count_mistake(request, portal)
    now = datetime.now(UTC)
    with portal.database.writing() as session:
        recovered = accounts.recover(session, now, code.strip())
        if recovered is None:
            return render(request, "recover.html", None, status=401, wrong=True)
        account, keys = recovered
        cookie = begin_session(session, now, account)
    return _show_keys(request, portal, account.name, keys, cookie)


@router.get("/join/{code}")
def show_invitation(request: Request, portal: PortalDependency, code: str) -> Response:
    """Show the form of an invitation."""
    invitation = _find_invitation(request, portal, code)
    return _join(request, invitation, invitation.name)


@router.post("/join/{code}")
def join(request: Request, portal: PortalDependency, code: str, name: Text = "", team: Text = "") -> Response:
    """Add the person who was invited, and begin a session."""
    invitation, now = _find_invitation(request, portal, code), datetime.now(UTC)
    try:
        with portal.database.writing() as session:
            account, keys = use_invitation(session, now, invitation, name.strip(), team.strip())
            cookie = begin_session(session, now, account)
    except UserError as error:
        return _join(request, invitation, name, team, str(error), 400)
    return _show_keys(request, portal, account.name, keys, cookie)


@router.get("/team")
def show_team(request: Request, portal: PortalDependency, visitor: Visitor) -> Response:
    """Show the members of the visitor's team."""
    if visitor is None:
        return RedirectResponse("/login", 303)
    with portal.database.reading() as session:
        members = [visitor] if visitor.team is None else accounts.list_members(session, visitor.team_id)
    return render(request, "team.html", visitor, members=members)


@router.post("/team")
def change_team(
    request: Request, portal: PortalDependency, visitor: Visitor, action: Text, member: Number = 0, proof: Text = ""
) -> Response:
    """Invite, give a member another token, shut a member out, or end the visitor's sessions in all browsers."""
    require_own_form(request, proof)
    if visitor is None:
        raise HTTPException(401, "You are no longer logged in. Log in again.")
    if not portal.allow("changes", str(visitor.team_id)):
        raise HTTPException(429, "Too many changes within a minute. Wait a little.", WAIT)

    now = datetime.now(UTC)
    with portal.database.writing() as session:
        if action == "invite" and visitor.team is not None:
            link = f"{portal.address(request)}/join/{invite(session, now, visitor.team, visitor.name)}"
            note = f"The first person to use it within {DURATION.days} days joins your team."
            return _show(request, "An invitation", {"Link": link}, note)
        if action == "leave":
            accounts.end_sessions(session, visitor.id)
            return RedirectResponse("/login", 303)

        # A team mate must not become an organiser by renewing the token of one.
        reachable = or_(AccountRow.id == visitor.id, AccountRow.is_organiser.is_(False))
        mates = select(AccountRow).where(AccountRow.team_id == visitor.team_id, AccountRow.revoked.is_(None), reachable)
        mate = session.scalar(mates.where(AccountRow.id == member).with_for_update(of=AccountRow))
        if mate is None or action not in {"renew", "revoke"}:
            raise HTTPException(404, "There is no such member of your team.")
        if action == "revoke":
            accounts.revoke_account(session, now, mate, visitor.name)
            return RedirectResponse("/team", 303)
        keys = accounts.renew_keys(session, now, mate, visitor.name)
        # The sessions of the mate have ended, and that of the visitor goes on.
        cookie = begin_session(session, now, mate) if mate.id == visitor.id else ""
    return _show_keys(request, portal, mate.name, keys, cookie)


def _count_mistake(request: Request, portal: Portal) -> None:
    """Count a wrong token or code, so that nobody tries many.

    Raises:
        HTTPException: There were too many within a minute.
    """
    if not portal.allow("mistakes", client_address(request)):
        raise HTTPException(429, "Too many attempts within a minute. Wait a little.", WAIT)


def _find_invitation(request: Request, portal: Portal, code: str) -> InvitationRow:
    """Return an open invitation.

    Raises:
        HTTPException: There is none, or there were too many attempts.
    """
    with portal.database.reading() as session:
        invitation = find_invitation(session, datetime.now(UTC), code=code)
    if invitation is None:
        _count_mistake(request, portal)
        raise HTTPException(404, "This invitation was used, has expired, or never existed. Ask for another.")
    return invitation


def _join(
    request: Request, invitation: InvitationRow, person: str, team_name: str = "", mistake: str = "", status: int = 200
) -> Response:
    """Show the form of an invitation, empty or as it was sent."""
    given = {"person": person, "team_name": team_name, "mistake": mistake}
    return render(request, "join.html", None, status=status, invitation=invitation, **given)


def _show_keys(request: Request, portal: Portal, name: str, keys: accounts.Keys, cookie: str) -> Response:
    """Show a person's new keys, and log the person in if there is a cookie."""
    note = "Use the token to log in, and in programs. Use the recovery code to get a new token if you lose it."
    secrets = {"Token": keys.token, "Recovery code": keys.recovery}
    response = _show(request, f"The keys of {name}", secrets, note)
    if cookie:
        set_cookie(response, cookie, portal.settings)
    return response


def _show(request: Request, title: str, secrets: dict[str, str], note: str) -> Response:
    """Show secrets, which no other page shows again."""
    return render(request, "secrets.html", None, headline=title, secrets=secrets, note=note)
