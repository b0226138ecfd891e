"""Connections to the server: the headers of a request must come in time, as its body must.

The middleware limits the time of a body that is waited for; here is that of one which comes after the answer.
"""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# Slow telephones need less. A connection that says nothing, or never ends its headers, would stay open for ever.
MAX_SECONDS = 20.0
TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class TimedConnection(H11Protocol):
    """A connection that ends where headers take too long, or a body that nobody needs."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as of the base class
        """Expect the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Handle bytes of a request."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time."""
        super().connection_lost(exc)
        self._stop()

    def _watch(self) -> None:
        """Let the time run while headers are not complete, and while a body is not that needs no answer any more."""
        is_answered = self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY
        if self.conn.their_state is not h11.IDLE and not is_answered:
            self._stop()
        elif self._timer is None:
            self._timer = self.loop.call_later(MAX_SECONDS, self._end)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        self.transport.write(TOO_LATE)
        self.transport.close()
