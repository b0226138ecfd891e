"""Sign-in by an organisation's OpenID Connect (OpenID Connect Core 1.0, section 3.1), beside tokens.

A person's account is that of the address which the organisation has verified, or of an open invitation to it.
"""

import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from authlib.integrations.starlette_client import OAuth, OAuthError
from fastapi import FastAPI, HTTPException, Request
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
from headstart.portal.settings import Oidc, read_file
from headstart.portal.web.responses import render
from headstart.portal.web.sessions import set_cookie
from headstart.portal.web.state import Portal, PortalDependency
from headstart.portal.web.submitting import WAIT

SECONDS, PATIENCE_SECONDS = 600, 10
AWAY = "Your organisation's sign-in does not work at present. Try again later, or log in with a token."
_log = logging.getLogger(__name__)


def add_sign_in(app: FastAPI, oidc: Oidc, secure: bool) -> None:
    """Add the pages of the sign-in to an application.

    Args:
        app: The application.
        oidc: The organisation's sign-in.
        secure: Whether browsers connect over TLS.

    Raises:
        UserError: The secret cannot be read.
    """
    client = OAuth().register(
        "organisation",
        client_id=oidc.client_id,
        client_secret=read_file("oidc.client_secret_file", oidc.client_secret_file).strip(),
        server_metadata_url=f"{oidc.issuer.rstrip('/')}/.well-known/openid-configuration",
        client_kwargs={"scope": "openid email profile", "code_challenge_method": "S256", "timeout": PATIENCE_SECONDS},
    )
    claims = {"iss": {"essential": True, "value": oidc.issuer}, "aud": {"essential": True, "value": oidc.client_id}}
    # Its cookie holds state and nonce until the answer comes, from a page of another site.
    options: dict[str, Any] = {"session_cookie": "headstart_sign_in", "path": "/sign-in", "max_age": SECONDS}
    app.add_middleware(SessionMiddleware, secrets.token_hex(), same_site="lax", https_only=secure, **options)

    @app.get("/sign-in")
    async def leave(request: Request, portal: PortalDependency) -> Response:
        """Send the browser to the organisation's sign-in."""
        with _clear_errors():
            response: Response = await client.authorize_redirect(request, f"{portal.address(request)}/sign-in/answer")
        return response

    @app.get("/sign-in/answer")
    async def come_back(request: Request, portal: PortalDependency) -> Response:
        """Begin a session for the person whom the organisation names."""
        with _clear_errors():
            person = (await client.authorize_access_token(request, claims_options=dict(claims)))["userinfo"]
        email = str(person.get("email", "")).strip().lower()
        if not email or person.get("email_verified") is not True:
            raise HTTPException(403, "Your organisation has not verified your e-mail address. Ask it to do so.")
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
        if account is None and (invitation := find_invitation(session, now, email=email)):
            try:
                account, _ = use_invitation(session, now, invitation, invitation.name or name[:MAX_NAME_LENGTH])
            except UserError as error:
                raise HTTPException(403, f"{error}. Open the link of your invitation.") from error
        account = if_valid(account)
        if account is None:
            ask = "Ask the organisers, or open the link of your invitation."
            raise HTTPException(403, f"There is no account and no invitation for {email}. {ask}")
        return account, begin_session(session, now, account)


@contextmanager
def _clear_errors() -> Iterator[None]:
    """Answer what is wrong with a sign-in by one sentence.

    Raises:
        HTTPException: The organisation refused, its answer is not valid, or its server is away or sends what nobody can
            read.
    """
    try:
        yield
    except (OAuthError, JoseError) as error:
        raise HTTPException(403, f"The sign-in was not completed ({error.error}). Start again.") from error
    except Exception as error:
        _log.warning("the organisation's sign-in failed: %s: %s", type(error).__name__, error)
        raise HTTPException(503, AWAY, WAIT) from error
