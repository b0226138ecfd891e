"""Answers to requests that fail: a page for people, JSON for programs, never a path or a traceback."""

from __future__ import annotations

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from headstart.portal.web.rendering import render

UNAVAILABLE_MESSAGE = "The portal cannot reach its records at present. Nothing was changed; try again in a minute."
DEFECT_MESSAGE = "Something went wrong here. The organisers can find it in the server's output."
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
PROGRAM_PATHS = ("/api/", "/health", "/metrics")


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


async def on_database_error(request: Request, error: Exception) -> Response:
    """Answer a request while the database is unreachable or full."""
    return error_response(request, 503, UNAVAILABLE_MESSAGE, {"Retry-After": "30"})


async def on_disconnect(request: Request, error: Exception) -> Response:
    """End a request whose client has left before the body was complete, which is no defect."""
    return error_response(request, 400, "The request ended before its body did.")


async def on_defect(request: Request, error: Exception) -> Response:
    """Answer a request after a defect; the server prints its traceback."""
    # This handler runs outside of the middleware that adds headers.
    return error_response(request, 500, DEFECT_MESSAGE, HEADERS)
