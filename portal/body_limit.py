"""Bodies of requests are measured before anything reads them."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send


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
            # What is left of the body is not read.
            await JSONResponse({"error": told}, 413, {"Connection": "close"})(scope, receive, send)
            return
        come = 0

        async def measured() -> Message:
            nonlocal come
            message = await receive()
            come += len(message.get("body", b""))
            if come > self._limit:
                raise HTTPException(413, told, {"Connection": "close"})
            return message

        await self._app(scope, measured, send)
