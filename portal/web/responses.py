"""Answers: pages made of templates, and errors as a page for people or JSON for programs, never with a traceback."""

from pathlib import Path
from typing import Any

from fastapi.exceptions import RequestValidationError
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from headstart.portal.database import UNAVAILABLE
from headstart.portal.intake import NotTakenError
from headstart.portal.web.state import WAIT, Portal

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
NO_PAGE = "There is no such page."
UNAVAILABLE_MESSAGE = "The portal cannot reach its database at present. Nothing was changed. Try again in a minute."
DEFECT_MESSAGE = "The portal made an error. The organisers can find it in the server's output."


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
    return HTMLResponse(TEMPLATES.get_template(name).render({"team": None, "proof": "", **shared, **context}), status)


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


async def answer_error(request: Request, error: Exception) -> Response:
    """Answer a request that fails: it is refused, the database is away, or the portal has a defect."""
    if isinstance(error, HTTPException):
        return error_response(request, error.status_code, str(error.detail), dict(error.headers or {}))
    if isinstance(error, NotTakenError):
        return error_response(request, 403, str(error))
    if isinstance(error, RequestValidationError):
        where, message = error.errors()[0]["loc"], error.errors()[0]["msg"]
        is_path = where[0] == "path"
        return error_response(request, 404 if is_path else 400, NO_PAGE if is_path else f"{where[-1]}: {message}")
    if isinstance(error, ClientDisconnect):
        return error_response(request, 400, "The request ended before its body did.")
    if isinstance(error, UNAVAILABLE):
        return error_response(request, 503, UNAVAILABLE_MESSAGE, WAIT)
    # This one runs outside of the middleware that adds headers. The server prints the traceback.
    return error_response(request, 500, DEFECT_MESSAGE, HEADERS)
