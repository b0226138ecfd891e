"""Return whether the dashboard's server can be reached."""

import re
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

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


def reset(connection: socket.socket) -> None:
    connection.recv(4096)
    # A linger time of 0 resets the connection.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def talk_nonsense(connection: socket.socket) -> None:
    with connection:
        connection.sendall(b"nonsense\r\n\r\n")


held: list[socket.socket] = []


SERVERS: dict[str, tuple[Callable[[socket.socket], None], str | None]] = {
    "answers": (reply("200 OK"), None),
    "refuses this page": (reply("404 Not Found"), None),
    "gateway": (reply("503 Service Unavailable"), "503"),
    "resets": (reset, "reset"),
    "hangs": (held.append, "no answer within 0.5 seconds|timed out"),
    "talks nonsense": (talk_nonsense, ""),
}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time out after half a second, and use no proxy."""
    monkeypatch.setattr("headstart.output.dashboard.TIMEOUT", 0.5)
    monkeypatch.setenv("no_proxy", "*")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("server", SERVERS)
def test_a_server_is_there_whatever_it_says(server: str) -> None:
    answer, problem = SERVERS[server]
    with listening(answer) as url:
        result = find_problem(url)
    assert (result is None) is (problem is None)
    assert problem is None or re.search(problem, str(result))


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://192.0.2.1", "http://nowhere.invalid", "no address"])
def test_nobody_is_there(url: str) -> None:
    assert find_problem(url)


@pytest.mark.usefixtures("impatient")
def test_a_name_that_is_looked_up_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    done = Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: done.wait(20) and [])
    assert find_problem("http://somewhere.example") == "no answer within 0.5 seconds"
    done.set()
