"""Answers: pages made of templates, and errors as a page for people or JSON for programs, never with a traceback."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from fastapi.exceptions import RequestValidationError
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from headstart.contract.challenge import Challenge
from headstart.portal.web.state import Portal

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
# Headers of all answers.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; "
        "base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
PROGRAM_PATHS = ("/api/", "/health", "/metrics")
Handler = Callable[[Request, Exception], Awaitable[Response]]


def render(request: Request, name: str, status: int = 200, **context: Any) -> HTMLResponse:
    """Render a page.

    Args:
        request: The request.
        name: Name of the template.
        status: Status of HTTP.
        context: Further values of the template, such as `team`, the team that is logged in.
    """
    portal: Portal = request.app.state.portal
    shared = {"portal": portal, "challenge": portal.challenge, "path": request.url.path}
    values = {"team": None, "proof": "", "local": local_times(portal.challenge), **shared, **context}
    return HTMLResponse(TEMPLATES.get_template(name).render(values), status)


def local_times(challenge: Challenge) -> Callable[[datetime], str]:
    """Return a function that writes times in a challenge's time zone."""
    return lambda time: f"{time.astimezone(challenge.zone):%Y-%m-%d %H:%M:%S} {challenge.time_zone}"


def error_response(request: Request, status: int, reason: str, headers: dict[str, str] | None = None) -> Response:
    """Build the answer to a request that fails.

    Args:
        request: The request.
        status: Status of HTTP.
        reason: A sentence for people.
        headers: Further headers of the answer.
    """
    if request.url.path.startswith(PROGRAM_PATHS):
        return JSONResponse({"error": reason}, status, headers)
    page = render(request, "problem.html", status, reason=reason, code=status)
    page.headers.update(headers or {})
    return page


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer a request that a route rejects."""
    assert isinstance(error, HTTPException)
    return error_response(request, error.status_code, str(error.detail), dict(error.headers or {}))


async def on_invalid_argument(request: Request, error: Exception) -> Response:
    """Answer a request with an invalid argument."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["loc"][0] == "path":
        return error_response(request, 404, "There is no such page.")
    return error_response(request, 400, f"{first['loc'][-1]}: {first['msg']}")


def always_answer(status: int, reason: str, headers: dict[str, str] | None = None) -> Handler:
    """Return an exception handler with one answer; arguments as of `error_response`."""

    async def answer(request: Request, error: Exception) -> Response:
        return error_response(request, status, reason, headers)

    return answer
