"""Who sends a request, and what is refused of all requests: other sites, other hosts, large bodies.

Programs send the token of their team, and cookies open nothing for them. Browsers keep the token as a cookie, which no
script and no other site can read or use.
"""

import hmac
from contextlib import suppress
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, HTTPException, Request
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headstart.portal.tables import TeamRow
from headstart.portal.teams import find_by_token
from headstart.portal.web.responses import COOKIE, HEADERS, PROGRAM_PATHS, error_response, form_proof
from headstart.portal.web.state import Portal, PortalDependency

HSTS = "max-age=31536000"
UNSAFE_METHODS = {"POST", "PUT", "PATCH", "DELETE"}
# Bytes beyond the limit are discarded up to here: if the connection closed earlier, the client would miss the answer.
MAX_DISCARDED = 64_000_000
CLOSE = {"Connection": "close"}


def visiting_team(request: Request, portal: PortalDependency) -> TeamRow | None:
    """Return the team of a page's cookie or of a program's token; None without either.

    Raises:
        HTTPException: There were too many wrong tokens from this address within a minute.
    """
    is_program = request.url.path.startswith(PROGRAM_PATHS)
    token = header_token(request) if is_program else request.cookies.get(COOKIE, "")
    team = find_by_token(portal.database, token) if token else None
    if token and team is None:
        portal.count("wrong tokens", request, None)
    return team


Visitor = Annotated[TeamRow | None, Depends(visiting_team)]


def calling_team(team: Visitor) -> TeamRow:
    """Return the team of a program's request.

    Raises:
        HTTPException: The header has no valid token.
    """
    if team is None:
        raise HTTPException(401, "The header Authorization has no valid token.", {"WWW-Authenticate": "Bearer"})
    return team


Caller = Annotated[TeamRow, Depends(calling_team)]


def header_token(request: Request) -> str:
    """Return the token of the header `Authorization: Bearer TOKEN`; empty without one."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def require_own_form(request: Request, proof: str) -> None:
    """Check that a form came from a page of this portal.

    Raises:
        HTTPException: Its hidden field is wrong.
    """
    if not (proof and hmac.compare_digest(form_proof(request).encode(), proof.encode())):
        raise HTTPException(403, "The form belongs to another session. Log in, open the form again and send it again.")


class SecurityMiddleware:
    """Rejects requests of other sites' pages, to other hosts and of large bodies; adds headers to all answers.

    Args:
        app: The application.
        portal: The portal that it serves.
        limit: The largest body in bytes.
    """

    def __init__(self, app: ASGIApp, portal: Portal, limit: int) -> None:
        self._app = app
        self._portal = portal
        self._limit = limit
        self._headers = {**HEADERS, "Strict-Transport-Security": HSTS} if portal.settings.behind_tls else HEADERS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def complete(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
                if not scope["path"].startswith("/static/"):
                    headers.setdefault("Cache-Control", "no-store")
                route = getattr(scope.get("route"), "path", "other")
                self._portal.answers.labels(route, str(message["status"])).inc()
            await send(message)

        request = Request(scope)
        length, hosts = request.headers.get("content-length", "0"), self._portal.settings.hosts
        app: ASGIApp = self._app
        if hosts and _host(request) not in hosts:
            app = error_response(request, 400, "The request is for another host than the portal's.")
        elif _is_cross_site(request, self._portal):
            app = error_response(request, 403, "The request came from a page of another site.")
        elif "transfer-encoding" in request.headers or not length.isdecimal():
            # The length is needed before the body: servers take no more bytes than it says.
            app = error_response(request, 411, "The request has no Content-Length.", CLOSE)
        elif int(length) > self._limit:
            if int(length) <= MAX_DISCARDED:
                await _discard(receive)
            app = error_response(request, 413, f"The request is larger than the limit of {self._limit:,} bytes.", CLOSE)
        await app(scope, receive, complete)


def _host(request: Request) -> str | None:
    with suppress(ValueError):
        return urlsplit(f"//{request.headers.get('host', '')}").hostname
    return None


def _is_cross_site(request: Request, portal: Portal) -> bool:
    """Return whether another site's page had the browser send a request that changes something."""
    if request.method not in UNSAFE_METHODS:
        return False
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        return True
    return request.headers.get("origin", portal.address(request)).lower() != portal.address(request).lower()


async def _discard(receive: Receive) -> None:
    while (await receive()).get("more_body", False):
        pass
