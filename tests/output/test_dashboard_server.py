"""Whether the dashboard's server can be reached, of servers that answer in any way."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread

import pytest

from headstart.output.dashboard import (
    find_problem,
)


@contextmanager
def listening(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Answer every connection within; give the address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    answer(server.accept()[0])

        Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def reply(status: str) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        with connection:
            connection.recv(4096)
            connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())

    return answer


unanswered: list[socket.socket] = []
# What a server does, and why it counts as one that cannot be reached.
SERVERS: dict[str, tuple[Callable[[socket.socket], None], str | None]] = {
    "answers": (reply("200 OK"), None),
    "refuses this page": (reply("404 Not Found"), None),
    "gateway": (reply("503 Service Unavailable"), "503"),
    "hangs": (unanswered.append, "timed out"),
}


def test_a_server_is_there_whatever_it_says_and_nothing_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headstart.output.dashboard.TIMEOUT", 0.5)
    monkeypatch.setenv("no_proxy", "*")
    for name, (answer, problem) in SERVERS.items():
        with listening(answer) as url:
            result = find_problem(url)
        assert (result is None) is (problem is None), name
        assert problem is None or problem in str(result), name
    for url in ("http://127.0.0.1:1", "http://nowhere.invalid", "no address"):
        assert find_problem(url), url
