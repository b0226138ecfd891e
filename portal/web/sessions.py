"""The account of a request, by the token of its header or the session of its cookie, and protection from other sites.

Programs send the token, and cookies open nothing for them. Browsers keep a cookie of its own for each session.
"""

import hashlib
import hmac
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, HTTPException, Request
from starlette.responses import Response

from headstart.portal.records.accounts import find_account
from headstart.portal.records.sessions import DURATION, find_visitor
from headstart.portal.records.tables import AccountRow
from headstart.portal.settings import Settings
from headstart.portal.web.state import Portal, PortalDependency

COOKIE = "headstart_session"
# What the page of a form asks while a document is written.
LIVE_CHECK = "/api/validate"
PORTS = {"http": 80, "https": 443}
UNSAFE_METHODS = {"POST", "PUT", "PATCH", "DELETE"}


def header_account(request: Request, portal: PortalDependency) -> AccountRow | None:
    """Return the account of a request by its header; None without a valid token."""
    token = header_token(request)
    return find_account(portal.database, token) if token else None


Bearer = Annotated[AccountRow | None, Depends(header_account)]


def visiting_account(request: Request, portal: PortalDependency, bearer: Bearer) -> AccountRow | None:
    """Return the account of a request by its header, or of a page by the session of its cookie; None without either."""
    cookie = request.cookies.get(COOKIE)
    is_for_program = request.url.path.startswith("/api/") and request.url.path != LIVE_CHECK
    return find_visitor(portal.database, cookie) if bearer is None and cookie and not is_for_program else bearer


def calling_account(request: Request, account: Bearer) -> AccountRow:
    """Return the account of a program's request, by its header.

    Raises:
        HTTPException: The header has no valid token.
    """
    if account is None:
        known = header_token(request)
        reason = "The token is not valid." if known else "A token is needed: Authorization: Bearer TOKEN."
        raise HTTPException(401, reason, {"WWW-Authenticate": "Bearer"})
    return account


Visitor = Annotated[AccountRow | None, Depends(visiting_account)]
Caller = Annotated[AccountRow, Depends(calling_account)]


def header_token(request: Request) -> str:
    """Return the token of the header `Authorization: Bearer TOKEN`; empty without one."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def set_cookie(response: Response, cookie: str, settings: Settings) -> None:
    """Store a session's cookie in the browser, where no script and no other site can read or use it."""
    seconds, secure = int(DURATION.total_seconds()), settings.behind_tls
    response.set_cookie(COOKIE, cookie, seconds, httponly=True, samesite="strict", secure=secure, path="/")


def form_proof(request: Request) -> str:
    """Return the hidden field of forms, which only a page of this portal can know; empty without a cookie."""
    cookie = request.cookies.get(COOKIE, "")
    return hmac.new(cookie.encode(), b"form", hashlib.sha256).hexdigest() if cookie else ""


def require_own_form(request: Request, proof: str) -> None:
    """Check that a form came from a page of this portal.

    Raises:
        HTTPException: Its hidden field is wrong.
    """
    if not (proof and hmac.compare_digest(form_proof(request).encode(), proof.encode())):
        raise HTTPException(403, "The form belongs to another session. Log in, open the form again and send it again.")


def is_cross_site(request: Request, portal: Portal) -> bool:
    """Whether another site's page had the browser send a request that changes something."""
    if request.method not in UNSAFE_METHODS:
        return False
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        return True
    origin = request.headers.get("origin")
    try:
        return origin is not None and _origin(origin) != _origin(portal.address(request))
    except ValueError:
        return True


def _origin(address: str) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port; browsers leave out the scheme's own port (RFC 6454)."""
    parts = urlsplit(address)
    return parts.scheme, parts.hostname, parts.port or PORTS.get(parts.scheme)
