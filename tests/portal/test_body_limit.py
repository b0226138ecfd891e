"""Bodies that are too large: in one part or in many, with and without a declared length."""

import asyncio

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from headstart.portal.web import middleware
from headstart.portal.web.middleware import BodyLimitMiddleware
from headstart.tests.material.portals import Site

LIMIT = 100


class Parts:
    """The parts of a body; after the last one, a server would wait for the client to leave, for ever."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = sizes
        self.read = 0

    async def receive(self) -> Message:
        assert self.read < len(self.sizes), "waits for ever"
        size = self.sizes[self.read]
        self.read += 1
        return {"type": "http.request", "body": b" " * size, "more_body": self.read < len(self.sizes)}


@pytest.fixture
def scope(site: Site) -> Scope:
    return {
        "type": "http",
        "method": "POST",
        "path": "/api/validate",
        "headers": [],
        "query_string": b"",
        "app": site.client.app,
    }


def ask(scope: Scope, sizes: list[int], declared: int | None) -> tuple[int, int, int]:
    """Return the status, the number of parts that were read, and the bytes that reached the application."""
    reached, status, parts = 0, 0, Parts(sizes)
    length = [] if declared is None else [(b"content-length", str(declared).encode())]

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal reached
        try:
            async for part in Request(scope, receive).stream():
                reached += len(part)
            await PlainTextResponse("taken")(scope, receive, send)
        except HTTPException as error:
            await PlainTextResponse("refused", error.status_code)(scope, receive, send)

    async def send(message: Message) -> None:
        nonlocal status
        status = message.get("status", status)

    asyncio.run(BodyLimitMiddleware(app, LIMIT)({**scope, "headers": length}, parts.receive, send))
    return status, parts.read, reached


@pytest.mark.parametrize("declared", [LIMIT, None])
@pytest.mark.parametrize("sizes", [[LIMIT], [0], [40, 60], [LIMIT, 0]])
def test_bodies_within_the_limit_are_accepted(scope: Scope, sizes: list[int], declared: int | None) -> None:
    assert ask(scope, sizes, declared) == (200, len(sizes), sum(sizes))


@pytest.mark.parametrize("sizes", [[101], [60, 41], [60, 41, 0], [60, 41, 1000, 1000]])
@pytest.mark.parametrize("with_length", [True, False])
def test_larger_bodies_are_refused_once_they_have_come(scope: Scope, sizes: list[int], with_length: bool) -> None:
    status, read, reached = ask(scope, sizes, sum(sizes) if with_length else None)
    assert (status, read) == (413, len(sizes))
    assert reached <= LIMIT


def test_far_more_is_not_even_thrown_away(scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "MAX_DISCARDED", 1000)
    assert ask(scope, [600] * 100, 60_000) == (413, 0, 0)
    status, read, _ = ask(scope, [600] * 100, None)
    assert status == 413
    assert read < 5


@pytest.mark.parametrize("declared", ["-5", "1e3", ""])
def test_lengths_that_are_none(site: Site, declared: str) -> None:
    answer = site.client.post("/api/validate?team=blue", content=b"{}", headers={"Content-Length": declared})
    assert answer.status_code == 413
