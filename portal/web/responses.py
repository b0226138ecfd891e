"""Answers: pages made of templates, and errors as a page for people or JSON for programs, never with a traceback."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from headstart.portal.records.tables import AccountRow
from headstart.portal.web.sessions import form_proof
from headstart.portal.web.state import Portal
from headstart.portal.web.template_files import TEMPLATES, local_times

# Headers of all answers.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
Handler = Callable[[Request, Exception], Awaitable[Response]]
PROGRAM_PATHS = ("/api/", "/health", "/metrics")


def render(
    request: Request, name: str, account: AccountRow | None, *, status: int = 200, **context: Any
) -> HTMLResponse:
    """Render a page.

    Args:
        request: The request.
        name: Name of the template.
        account: The account of who asks.
        status: Status of HTTP.
        context: Further values of the template.
    """
    portal: Portal = request.app.state.portal
    shared = {
        "portal": portal,
        "challenge": portal.challenge,
        "account": account,
        "team": account and account.team,
        "path": request.url.path,
        "proof": form_proof(request),
        "is_over": portal.is_over(),
        "is_ahead": portal.challenge.is_ahead(datetime.now(UTC)),
        "local": local_times(portal.challenge),
    }
    return HTMLResponse(TEMPLATES.get_template(name).render(**shared, **context), status)


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
    page = render(request, "problem.html", None, status=status, reason=reason, code=status)
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
