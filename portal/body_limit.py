"""Bodies of requests are measured before anything reads them, and not waited for without end."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headstart.portal.refusals import refuse

# What comes beyond the limit is thrown away up to here: a connection that is closed before would lose the answer, too.
THROWN_AWAY = 64_000_000
# A slow telephone takes less. Who sends a byte now and then would keep a connection, and what it has sent, for ever.
MOST_SECONDS = 120.0
CLOSE = {"Connection": "close"}


class BodyLimit:
    """Refuses larger bodies, by what they say of themselves, else as soon as more has come, and those that take long.

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
        receive = _within(receive, MOST_SECONDS)
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


def _within(receive: Receive, seconds: float) -> Receive:
    """Receive a body until some time has passed; when it is there, the sender's going away may be waited for."""
    last, whole = asyncio.get_running_loop().time() + seconds, False

    async def receive_in_time() -> Message:
        nonlocal whole
        try:
            async with asyncio.timeout_at(None if whole else last):
                message = await receive()
        except TimeoutError as error:
            raise HTTPException(408, f"The request took longer than {seconds:g} s to come.", CLOSE) from error
        whole = not message.get("more_body", False)
        return message

    return receive_in_time


async def _throw_away(receive: Receive) -> None:
    come, more = 0, True
    with suppress(HTTPException):
        while more and come <= THROWN_AWAY:
            message = await receive()
            come += len(message.get("body", b""))
            more = message.get("more_body", False)
