"""Bodies of requests are measured before anything reads them."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from portal.refusals import refuse

# What comes beyond the limit is thrown away up to here: a connection that is closed before would lose the answer, too.
THROWN_AWAY = 64_000_000
CLOSE = {"Connection": "close"}


class BodyLimit:
    """Refuses larger bodies, by what they say of themselves, and else as soon as more has come.

    Args:
        app: What answers.
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
        told = f"The request is larger than {self._limit:,} bytes, the limit."
        said = dict(scope["headers"]).get(b"content-length", b"0")
        if not said.isdigit() or int(said) > self._limit:
            if said.isdigit() and int(said) <= THROWN_AWAY:
                await _throw_away(receive)
            await refuse(Request(scope), 413, told, CLOSE)(scope, receive, send)
            return
        come = 0

        async def measured() -> Message:
            nonlocal come
            message = await receive()
            come += len(message.get("body", b""))
            if come > self._limit:
                if message.get("more_body", False):
                    await _throw_away(receive)
                raise HTTPException(413, told, CLOSE)
            return message

        await self._app(scope, measured, send)


async def _throw_away(receive: Receive) -> None:
    come, more = 0, True
    while more and come <= THROWN_AWAY:
        message = await receive()
        come += len(message.get("body", b""))
        more = message.get("more_body", False)
