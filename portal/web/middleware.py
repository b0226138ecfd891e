"""Checks and headers of all requests: their size, their host, their origin, and the metrics of the answers."""

import time
from contextlib import suppress
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headstart.portal.web.responses import HEADERS, error_response
from headstart.portal.web.sessions import is_cross_site
from headstart.portal.web.state import Portal

HSTS = "max-age=31536000"
# Bytes beyond the limit are discarded up to here: if the connection closed earlier, the client would miss the answer.
MAX_DISCARDED = 64_000_000
CLOSE = {"Connection": "close"}


class CommonMiddleware:
    """Rejects requests of other sites' pages and to other hosts, adds headers to all answers, and measures them.

    Args:
        app: The application.
        portal: The portal that it serves.
    """

    def __init__(self, app: ASGIApp, portal: Portal) -> None:
        self._app = app
        self._portal = portal
        self._hosts = portal.settings.hosts
        self._headers = {**HEADERS, "Strict-Transport-Security": HSTS} if portal.settings.behind_tls else HEADERS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, is_head = time.perf_counter(), scope["method"] == "HEAD"
        if is_head:
            # The answer is that of GET without its body.
            scope["method"] = "GET"
        request = Request(scope)

        async def complete(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
                if not scope["path"].startswith("/static/"):
                    headers.setdefault("Cache-Control", "no-store")
                route = getattr(scope.get("route"), "path", "other")
                self._portal.metrics.record(route, message["status"], time.perf_counter() - start)
            await send({**message, "body": b""} if is_head and message["type"] == "http.response.body" else message)

        app: ASGIApp = self._app
        if is_cross_site(request, self._portal):
            app = error_response(request, 403, "The request came from a page of another site.")
        if self._hosts and _host(request) not in self._hosts:
            app = error_response(request, 400, "The request is for another host than the portal's.")
        await app(scope, receive, complete)


class BodyLimitMiddleware:
    """Rejects large bodies, by their declared length or as soon as more has arrived.

    Args:
        app: The application.
        limit: The largest body in bytes.
    """

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        reason = f"The request is larger than the limit of {self._limit:,} bytes."
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if not declared.isdigit() or int(declared) > self._limit:
            if declared.isdigit() and int(declared) <= MAX_DISCARDED:
                await _discard(receive)
            await error_response(Request(scope), 413, reason, CLOSE)(scope, receive, send)
            return

        received = 0

        async def receive_limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._limit:
                if message.get("more_body", False):
                    await _discard(receive)
                raise HTTPException(413, reason, CLOSE)
            return message

        await self._app(scope, receive_limited, send)


def _host(request: Request) -> str | None:
    with suppress(ValueError):
        return urlsplit(f"//{request.headers.get('host', '')}").hostname
    return None


async def _discard(receive: Receive) -> None:
    received, more = 0, True
    while more and received <= MAX_DISCARDED:
        message = await receive()
        received += len(message.get("body", b""))
        more = message.get("more_body", False)
