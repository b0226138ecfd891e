"""Who asks: the token of a request's header or cookie, and what keeps other sites from asking in a team's name."""

from __future__ import annotations

import hashlib
import hmac
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, HTTPException, Request
from starlette.responses import Response

from headstart.portal.accounts import Team, find_team
from headstart.portal.settings import Settings
from headstart.portal.state import Portal, PortalDependency

COOKIE = "headstart_token"
COOKIE_SECONDS = 14 * 24 * 3600
PORTS = {"http": 80, "https": 443}
UNSAFE = {"POST", "PUT", "PATCH", "DELETE"}


def visiting_team(request: Request, portal: PortalDependency) -> Team | None:
    """Tell which team asks, by its cookie or its header; None where none does."""
    token = header_token(request) or request.cookies.get(COOKIE)
    return find_team(portal.database, token) if token else None


def calling_team(request: Request, portal: PortalDependency) -> Team:
    """Tell which team's program asks, by its header; 401 where there is none.

    Raises:
        HTTPException: No team's token is given.
    """
    token = header_token(request)
    team = find_team(portal.database, token) if token else None
    if team is None:
        what = "The token is not valid." if token else "A token is needed: Authorization: Bearer TOKEN."
        raise HTTPException(401, what, {"WWW-Authenticate": "Bearer"})
    return team


Visitor = Annotated[Team | None, Depends(visiting_team)]
Caller = Annotated[Team, Depends(calling_team)]


def header_token(request: Request) -> str:
    """Give the token of the header `Authorization: Bearer TOKEN`; empty without one."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def remember(response: Response, token: str, settings: Settings) -> None:
    """Keep a token in the browser, where no script and no other site can read or use it."""
    response.set_cookie(
        COOKIE, token, COOKIE_SECONDS, httponly=True, samesite="strict", secure=settings.behind_tls, path="/"
    )


def forget(response: Response) -> None:
    """Remove the token from the browser."""
    response.delete_cookie(COOKIE, path="/")


def form_proof(request: Request) -> str:
    """Give what a form has to send along, which only a page of this portal can know; empty without a cookie."""
    token = request.cookies.get(COOKIE, "")
    return hmac.new(token.encode(), b"form", hashlib.sha256).hexdigest() if token else ""


def is_own_form(request: Request, proof: str) -> bool:
    """Tell whether a form came from a page of this portal."""
    return bool(proof) and hmac.compare_digest(form_proof(request).encode(), proof.encode())


def is_from_elsewhere(request: Request, portal: Portal) -> bool:
    """Tell whether another site's page had the browser ask for a change."""
    if request.method not in UNSAFE:
        return False
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        return True
    origin = request.headers.get("origin")
    try:
        return origin is not None and _origin(origin) != _origin(portal.address(request))
    except ValueError:
        return True


def _origin(address: str) -> tuple[str, str | None, int | None]:
    """Give scheme, host and port, which browsers leave out where it is the scheme's own (RFC 6454)."""
    parts = urlsplit(address)
    return parts.scheme, parts.hostname, parts.port or PORTS.get(parts.scheme)
