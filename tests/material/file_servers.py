"""A web server of files in memory, which can fail as servers and networks do."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@dataclass
class FileServer:
    """Files by path, and what goes wrong.

    Attributes:
        url: Address, without a slash at its end.
        files: Their bytes.
        failures: How often a path fails first, with this status; 0 cuts the answer off, and a negative one waits for so
            many seconds.
        requests: Number of requests, by method and path.
    """

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    failures: dict[str, list[int]] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)


@contextmanager
def serve_files() -> Iterator[FileServer]:
    """Serve files at a free port of this machine."""
    served = FileServer()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.answer()

        def do_GET(self) -> None:
            self.answer()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.answer()

        def answer(self) -> None:
            served.requests[f"{self.command} {self.path}"] += 1
            failure = served.failures[self.path].pop(0) if served.failures.get(self.path) else None
            content = served.files.get(self.path)
            if failure is not None and failure < 0:
                time.sleep(-failure)
            if failure or content is None:
                self.send_response(failure or 404)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return

            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content[: len(content) // 2] if failure == 0 else content)

        def log_message(self, *args: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served.url = f"http://127.0.0.1:{server.server_address[1]}"
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield served
        server.shutdown()
