"""Sign-in by an organisation's OpenID Connect (OpenID Connect Core 1.0, section 3.1), beside tokens.

A person's account is that of the address which the organisation has verified, or of an open invitation to it.
"""

import logging
import secrets
from datetime import UTC, datetime
from typing import Any

from authlib.integrations.starlette_client import OAuth, OAuthError
from fastapi import APIRouter, FastAPI, HTTPException, Request
from joserfc.errors import JoseError
from sqlalchemy import select
from starlette.concurrency import run_in_threadpool
from starlette.middleware.sessions import SessionMiddleware
from starlette.responses import Response

from headstart.output.errors import UserError
from headstart.portal.records.accounts import if_valid
from headstart.portal.records.invitations import find_invitation, use_invitation
from headstart.portal.records.names import MAX_NAME_LENGTH
from headstart.portal.records.sessions import begin_session
from headstart.portal.records.tables import AccountRow
from headstart.portal.settings import Settings
from headstart.portal.web.responses import render
from headstart.portal.web.sessions import set_cookie
from headstart.portal.web.state import Portal, PortalDependency
from headstart.portal.web.submitting import WAIT

router = APIRouter()
MINUTES, PATIENCE_SECONDS = 10, 10
AWAY = "Your organisation's sign-in does not answer as it should at present. Try again later, or log in with a token."
UNKNOWN = "There is no account and no invitation for {}. Ask the organisers, or open the link of your invitation."
_log = logging.getLogger(__name__)


def add_sign_in(app: FastAPI, settings: Settings) -> None:
    """Add the pages of the sign-in to an application.

    Args:
        app: The application.
        settings: The organiser's settings, with `oidc`.

    Raises:
        UserError: The secret cannot be read.
    """
    oidc = settings.oidc
    assert oidc is not None
    app.state.sign_in = OAuth().register(
        "organisation",
        client_id=oidc.client_id,
        client_secret=oidc.read_secret(),
        server_metadata_url=f"{oidc.issuer.rstrip('/')}/.well-known/openid-configuration",
        client_kwargs={
            "scope": "openid email profile",
            "code_challenge_method": "S256",
            "timeout": PATIENCE_SECONDS,
        },
    )
    # It holds the state and the nonce of a sign-in for some minutes. The answer comes from another site.
    app.add_middleware(
        SessionMiddleware,
        secret_key=secrets.token_hex(),
        session_cookie="headstart_sign_in",
        max_age=60 * MINUTES,
        path="/sign-in",
        same_site="lax",
        https_only=settings.behind_tls,
    )
    app.include_router(router)


@router.get("/sign-in")
async def go_to_organisation(request: Request, portal: PortalDependency) -> Response:
    """Send the browser to the organisation's sign-in."""
    try:
        back = f"{portal.address(request)}/sign-in/answer"
        response: Response = await request.app.state.sign_in.authorize_redirect(request, back)
    except Exception as error:
        raise _away(error) from error
    return response


@router.get("/sign-in/answer")
async def come_back(request: Request, portal: PortalDependency) -> Response:
    """Begin a session for the person whom the organisation names."""
    oidc = portal.settings.oidc
    assert oidc is not None
    try:
        values = {"iss": oidc.issuer, "aud": oidc.client_id}
        options = {claim: {"essential": True, "value": value} for claim, value in values.items()}
        answer = await request.app.state.sign_in.authorize_access_token(request, claims_options=options)
        person: dict[str, Any] = answer["userinfo"]
    except (OAuthError, JoseError) as error:
        raise HTTPException(403, f"The sign-in was not completed ({error.error}); begin it again.") from error
    except Exception as error:
        raise _away(error) from error

    email = str(person.get("email", "")).strip().lower()
    if not email or person.get("email_verified") is not True:
        raise HTTPException(403, "Your organisation has not verified your e-mail address, so it opens no account.")
    account, cookie = await run_in_threadpool(_enter, portal, email, str(person.get("name") or email))
    response = render(request, "signed_in.html", None, person=account.name)
    set_cookie(response, cookie, portal.settings)
    return response


def _enter(portal: Portal, email: str, name: str) -> tuple[AccountRow, str]:
    """Return the account of an address, which an open invitation to it may create, and the cookie of a session.

    Raises:
        HTTPException: There is neither.
    """
    now = datetime.now(UTC)
    with portal.database.writing() as session:
        account = session.scalar(select(AccountRow).where(AccountRow.email == email))
        invitation = None if account else find_invitation(session, now, email=email)
        if invitation is not None:
            try:
                account, _ = use_invitation(session, now, invitation, invitation.name or name[:MAX_NAME_LENGTH])
            except UserError as error:
                raise HTTPException(403, f"{error}. Open the link of your invitation.") from error
        account = if_valid(account)
        if account is None:
            raise HTTPException(403, UNKNOWN.format(email))
        return account, begin_session(session, now, account)


def _away(error: Exception) -> HTTPException:
    """Return the answer where the organisation's server is away, or sends what nobody can read."""
    _log.warning("the organisation's sign-in failed: %s: %s", type(error).__name__, error)
    return HTTPException(503, AWAY, WAIT)
