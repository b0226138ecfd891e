"""Answers that say why there is no other: a page for people, JSON for programs, and never a path or a traceback."""

from __future__ import annotations

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from headstart.portal.rendering import render

AWAY = "The portal cannot reach its records at present. Nothing was changed; try again in a minute."
DEFECT = "Something went wrong here. The organisers can find it in the server's output."
# Of all answers.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
FOR_PROGRAMS = ("/api/", "/health", "/metrics")


def refuse(request: Request, status: int, reason: str, headers: dict[str, str] | None = None) -> Response:
    """Say why a request is not answered otherwise.

    Args:
        request: The request.
        status: Of HTTP.
        reason: A sentence for people.
        headers: What else the answer has.
    """
    if request.url.path.startswith(FOR_PROGRAMS):
        return JSONResponse({"error": reason}, status, headers)
    page = render(request, "problem.html", None, status=status, reason=reason, code=status)
    page.headers.update(headers or {})
    return page


async def show_refusal(request: Request, error: Exception) -> Response:
    """Say what a route refuses."""
    assert isinstance(error, HTTPException)
    return refuse(request, error.status_code, str(error.detail), dict(error.headers or {}))


async def show_wrong_request(request: Request, error: Exception) -> Response:
    """Say what an argument should have been."""
    assert isinstance(error, RequestValidationError)
    wrong = error.errors()[0]
    if wrong["loc"][0] == "path":
        return refuse(request, 404, "There is no such page.")
    return refuse(request, 400, f"{wrong['loc'][-1]}: {wrong['msg']}")


async def show_away(request: Request, error: Exception) -> Response:
    """Say that the database is away, or has no room."""
    return refuse(request, 503, AWAY, {"Retry-After": "30"})


async def show_gone(request: Request, error: Exception) -> Response:
    """End a request whose sender went away in the middle of it, which is no defect."""
    return refuse(request, 400, "The request ended before its body did.")


async def show_defect(request: Request, error: Exception) -> Response:
    """Say that there is a defect; the server prints its traceback."""
    # It is found outside of what adds them to others.
    return refuse(request, 500, DEFECT, HEADERS)
