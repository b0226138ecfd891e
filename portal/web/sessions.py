"""The account of a request, by the token of its header or cookie, and protection against requests of other sites."""

import hashlib
import hmac
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, HTTPException, Request
from starlette.responses import Response

from headstart.portal.records.accounts import find_account
from headstart.portal.records.tables import AccountRow
from headstart.portal.settings import Settings
from headstart.portal.web.state import Portal, PortalDependency

COOKIE = "headstart_token"
COOKIE_SECONDS = 14 * 24 * 3600
PORTS = {"http": 80, "https": 443}
UNSAFE_METHODS = {"POST", "PUT", "PATCH", "DELETE"}


def visiting_account(request: Request, portal: PortalDependency) -> AccountRow | None:
    """Return the account of a request, by its header or cookie; None without a valid token."""
    token = header_token(request) or request.cookies.get(COOKIE)
    return find_account(portal.database, token) if token else None


def calling_account(request: Request, portal: PortalDependency) -> AccountRow:
    """Return the account of a program's request, by its header.

    Raises:
        HTTPException: The header has no valid token.
    """
    token = header_token(request)
    account = find_account(portal.database, token) if token else None
    if account is None:
        reason = "The token is not valid." if token else "A token is needed: Authorization: Bearer TOKEN."
        raise HTTPException(401, reason, {"WWW-Authenticate": "Bearer"})
    return account


Visitor = Annotated[AccountRow | None, Depends(visiting_account)]
Caller = Annotated[AccountRow, Depends(calling_account)]


def header_token(request: Request) -> str:
    """Return the token of the header `Authorization: Bearer TOKEN`; empty without one."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def set_token_cookie(response: Response, token: str, settings: Settings) -> None:
    """Store a token in the browser, where no script and no other site can read or use it."""
    response.set_cookie(
        COOKIE, token, COOKIE_SECONDS, httponly=True, samesite="strict", secure=settings.behind_tls, path="/"
    )


def form_proof(request: Request) -> str:
    """Return the hidden field of forms, which only a page of this portal can know; empty without a cookie."""
    token = request.cookies.get(COOKIE, "")
    return hmac.new(token.encode(), b"form", hashlib.sha256).hexdigest() if token else ""


def require_own_form(request: Request, proof: str) -> None:
    """Check that a form came from a page of this portal.

    Raises:
        HTTPException: Its hidden field is wrong.
    """
    if not (proof and hmac.compare_digest(form_proof(request).encode(), proof.encode())):
        raise HTTPException(403, "The form is not of your session; log in, open it again and send it again.")


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
