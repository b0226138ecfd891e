"""Connections to the server: the headers of a request must come in time, and its body too, also after the answer."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# Slow telephones need less. Clients that send single bytes would hold a connection and its memory for ever.
SECONDS = {h11.IDLE: 20.0, h11.SEND_BODY: 120.0}
TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class TimedConnection(H11Protocol):
    """A connection that ends where headers or a body take too long, those of later requests, too."""

    _state: object = None
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
        """Start the time again where the client begins headers or a body, and stop it where both are complete."""
        if self.conn.their_state is not self._state:
            self._stop()
            self._state = self.conn.their_state
            if seconds := SECONDS.get(self._state):
                self._timer = self.loop.call_later(seconds, self._end)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _end(self) -> None:
        # An answer may have begun, or ended, before the body has.
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.write(TOO_LATE)
        self.transport.close()
