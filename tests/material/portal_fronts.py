"""A proxy before a portal, which fails as networks and other people's servers do."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx

# The request reaches the portal, and its answer is lost.
LOST = "lost"
Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Front:
    """The proxy.

    Attributes:
        url: Its address.
        answers: What it answers itself, by method and path without a query, in this order, before it asks the portal.
        requests: Every request with its body and its key, in order.
    """

    url: str = ""
    answers: dict[str, list[Answer | str]] = field(default_factory=dict)
    requests: list[tuple[str, bytes, str | None]] = field(default_factory=list)

    def answer(self, request: str, status: int, body: bytes = b"", **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers.setdefault(request, []).append((status, named, body))

    def lose(self, request: str) -> None:
        self.answers.setdefault(request, []).append(LOST)

    def sent(self, request: str) -> list[str | None]:
        """Return the keys of all requests of a method and path."""
        return [key for name, _, key in self.requests if name == request]


@contextmanager
def serve_front(address: str) -> Iterator[Front]:
    """Serve a proxy before a portal at a free port."""
    front = Front()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.pass_on()

        def do_POST(self) -> None:
            self.pass_on()

        def pass_on(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = f"{self.command} {self.path.partition('?')[0]}"
            front.requests.append((request, content, self.headers.get("Idempotency-Key")))
            waiting = front.answers.get(request)
            answer = waiting.pop(0) if waiting else None
            if not isinstance(answer, tuple):
                headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
                given = httpx.request(self.command, address + self.path, content=content, headers=headers, timeout=30)
                if answer == LOST:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                kept = ("Content-Type", "Retry-After")
                headers = {name: given.headers[name] for name in kept if name in given.headers}
                answer = given.status_code, headers, given.content

            status, headers, body = answer
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (named by http.server)
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        front.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield front
        finally:
            server.shutdown()
            thread.join()
