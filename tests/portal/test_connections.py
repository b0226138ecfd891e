"""Headers and bodies that do not come: half sent, sent byte by byte, or not at all, also after an answered request."""

import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import h11
import pytest

from headstart.portal.web import connections
from headstart.tests.material.portals import make_settings
from headstart.tests.material.served_portals import serve_portal

SECONDS, BODY_SECONDS = 0.5, 2.0
PATIENCE = 20.0
REQUEST = b"GET /api/challenge HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    with pytest.MonkeyPatch.context() as patch, serve_portal(make_settings(tmp_path_factory.mktemp("a"), {})) as url:
        patch.setattr(connections, "SECONDS", {h11.IDLE: SECONDS, h11.SEND_BODY: BODY_SECONDS})
        parts = urlsplit(url)
        yield str(parts.hostname), int(parts.port or 0)


def connect(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address, PATIENCE)


def read_to_end(connection: socket.socket) -> bytes:
    """Return all that comes until the server closes the connection."""
    text = b""
    while part := connection.recv(65_536):
        text += part
    return text


def read_answer(connection: socket.socket) -> bytes:
    """Return one answer, by its declared length."""
    text = b""
    while b"\r\n\r\n" not in text:
        text += connection.recv(1)
    head = text.lower()
    length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while length:
        length -= len(connection.recv(length))
    return text


@pytest.mark.parametrize("sent", [b"", b"GET", REQUEST[:-2]], ids=["nothing", "a word", "half"])
def test_headers_that_do_not_come_are_not_waited_for(address: tuple[str, int], sent: bytes) -> None:
    with connect(address) as connection:
        began = time.monotonic()
        connection.sendall(sent)
        assert read_to_end(connection).startswith(b"HTTP/1.1 408 ")
        assert time.monotonic() - began > 0.9 * SECONDS


def send_slowly(connection: socket.socket) -> bytes:
    """Send single bytes until the server closes the connection, and return all that comes."""
    connection.settimeout(SECONDS / 10)
    end, text = time.monotonic() + PATIENCE / 2, b""
    while time.monotonic() < end:
        try:
            connection.sendall(b"1")
            part = connection.recv(65_536)
        except TimeoutError:
            continue
        except ConnectionError:
            return text
        if not part:
            return text
        text += part
    raise AssertionError(text)


def test_headers_that_come_byte_by_byte_do_not_last(address: tuple[str, int]) -> None:
    with connect(address) as connection:
        assert send_slowly(connection).startswith(b"HTTP/1.1 408 ")


CHECK, LARGE = b"POST /api/validate?team=blue", b"Content-Length: 1000000"


@pytest.mark.parametrize(
    ("line", "header", "status"),
    [
        (CHECK, LARGE, b"408"),
        (CHECK, b"Transfer-Encoding: chunked", b"408"),
        # Too large, and read to its end all the same.
        (CHECK, b"Content-Length: 10000000", b"408"),
        # What is answered before its body has come.
        (b"POST /nothing", LARGE, b"404"),
        (b"GET /api/challenge", LARGE, b"200"),
    ],
)
def test_bodies_that_come_byte_by_byte_do_not_last(
    address: tuple[str, int], line: bytes, header: bytes, status: bytes
) -> None:
    with connect(address) as connection:
        began = time.monotonic()
        connection.sendall(line + b" HTTP/1.1\r\nHost: localhost\r\n" + header + b"\r\n\r\n")
        assert re.findall(rb"HTTP/1.1 (\d+) ", send_slowly(connection)) == [status]
        assert time.monotonic() - began > 0.9 * BODY_SECONDS


def test_later_requests_of_a_connection_have_the_same_time(address: tuple[str, int]) -> None:
    with connect(address) as connection:
        for _ in range(3):
            connection.sendall(REQUEST)
            assert read_answer(connection).startswith(b"HTTP/1.1 200 ")
            # Idle connections wait for their next request longer than headers may take.
            time.sleep(1.2 * SECONDS)
        connection.sendall(REQUEST[:-2])
        assert read_to_end(connection).startswith(b"HTTP/1.1 408 ")


def test_a_body_has_a_limit_of_its_own(address: tuple[str, int]) -> None:
    head = b"POST /api/validate?team=blue HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n"
    with connect(address) as connection:
        connection.sendall(head)
        time.sleep(1.5 * SECONDS)
        connection.sendall(b"{}")
        assert read_answer(connection).startswith(b"HTTP/1.1 200 ")


@pytest.mark.slow
def test_many_half_sent_headers_end_and_keep_nobody_out(address: tuple[str, int]) -> None:
    count = 400
    with ExitStack() as stack:
        opened = [stack.enter_context(connect(address)) for _ in range(count)]
        for each in opened:
            each.sendall(REQUEST[:-2])
        with connect(address) as connection:
            connection.sendall(REQUEST)
            assert read_answer(connection).startswith(b"HTTP/1.1 200 ")
        began = time.monotonic()
        assert all(read_to_end(each).startswith(b"HTTP/1.1 408 ") for each in opened)
        assert time.monotonic() - began < PATIENCE
