"""Answers: pages made of templates, and errors as a page for people or JSON for programs, never with a traceback."""

import hashlib
import hmac
from pathlib import Path
from typing import Any

from fastapi.exceptions import RequestValidationError
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from headstart.portal.database import UNAVAILABLE
from headstart.portal.intake import NotTakenError
from headstart.portal.tables import TeamRow
from headstart.portal.web.state import WAIT, Portal

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
COOKIE = "headstart_token"
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
UNAVAILABLE_MESSAGE = "The portal cannot reach its database at present. Nothing was changed. Try again in a minute."
DEFECT_MESSAGE = "The portal made an error. The organisers can find it in the server's output."


def form_proof(request: Request) -> str:
    """Return the hidden field of forms, which only a page of this portal can know; empty without a cookie."""
    cookie = request.cookies.get(COOKIE, "")
    return hmac.new(cookie.encode(), b"form", hashlib.sha256).hexdigest() if cookie else ""


def render(request: Request, name: str, team: TeamRow | None, status: int = 200, **context: Any) -> HTMLResponse:
    """Render a page.

    Args:
        request: The request.
        name: Name of the template.
        team: The team that is logged in.
        status: Status of HTTP.
        context: Further values of the template.
    """
    portal: Portal = request.app.state.portal
    shared = {"portal": portal, "challenge": portal.challenge, "path": request.url.path, "proof": form_proof(request)}
    return HTMLResponse(TEMPLATES.get_template(name).render(team=team, **shared, **context), status)


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
    page = render(request, "problem.html", None, status, reason=reason, code=status)
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
        if where[0] == "path":
            return error_response(request, 404, "There is no such page.")
        return error_response(request, 400, f"{where[-1]}: {message}")
    if isinstance(error, ClientDisconnect):
        return error_response(request, 400, "The request ended before its body did.")
    if isinstance(error, UNAVAILABLE):
        return error_response(request, 503, UNAVAILABLE_MESSAGE, WAIT)
    # This one runs outside of the middleware that adds headers. The server prints the traceback.
    return error_response(request, 500, DEFECT_MESSAGE, HEADERS)
