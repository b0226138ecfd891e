"""What is the same for all answers: their headers, that they are noted, and that other sites' pages get none."""

from __future__ import annotations

import time

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headstart.portal.refusals import HEADERS, refuse
from headstart.portal.sessions import is_from_elsewhere
from headstart.portal.state import Portal

TLS_ALONE = "max-age=31536000"


class Front:
    """Answers by an application, if the request may be answered.

    Args:
        app: The application.
        portal: Whose it is.
    """

    def __init__(self, app: ASGIApp, portal: Portal) -> None:
        self._app = app
        self._portal = portal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, empty = time.perf_counter(), scope["method"] == "HEAD"
        if empty:
            # Answered as GET is, without what it would show.
            scope["method"] = "GET"
        request = Request(scope)

        async def complete(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._add_headers(scope, MutableHeaders(scope=message))
                route = getattr(scope.get("route"), "path", "other")
                self._portal.metrics.note(route, message["status"], time.perf_counter() - start)
            await send({**message, "body": b""} if empty and message["type"] == "http.response.body" else message)

        app: ASGIApp = self._app
        if is_from_elsewhere(request, self._portal):
            app = refuse(request, 403, "The request came from a page of another site.")
        await app(scope, receive, complete)

    def _add_headers(self, scope: Scope, headers: MutableHeaders) -> None:
        for name, value in HEADERS.items():
            headers.setdefault(name, value)
        if self._portal.settings.behind_tls:
            headers.setdefault("Strict-Transport-Security", TLS_ALONE)
        if not scope["path"].startswith("/static/"):
            headers.setdefault("Cache-Control", "no-store")
