"""The web server's application: its routes, what it refuses of all requests, and its answers to those that fail.

Errors are a page for people or JSON for programs, never with a traceback.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.base import RequestResponseEndpoint
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.staticfiles import StaticFiles

from headstart.portal.database import UNAVAILABLE
from headstart.portal.queue import NotTakenError
from headstart.portal.settings import Settings
from headstart.portal.web import api, pages
from headstart.portal.web.state import PROGRAM_PATHS, WAIT, Portal

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
HSTS = "max-age=31536000"
UNSAFE_METHODS = {"POST", "PUT", "PATCH", "DELETE"}
# Bytes beyond the limit are discarded up to here: if the connection closed earlier, the client would miss the answer.
MAX_DISCARDED = 64_000_000
CLOSE = {"Connection": "close"}
UNAVAILABLE_MESSAGE = "The portal cannot reach its database at present. Nothing was changed. Try again in a minute."
DEFECT_MESSAGE = "The portal made an error. The organisers can find it in the server's output."


def create_app(settings: Settings) -> FastAPI:
    """Create the application that serves a portal.

    Args:
        settings: The organiser's settings.

    Raises:
        UserError: A document that they name cannot be read, or the tables are not the portal's.
    """
    portal = Portal(settings)
    headers = {**HEADERS, "Strict-Transport-Security": HSTS} if settings.behind_tls else HEADERS

    @asynccontextmanager
    async def run(_: FastAPI) -> AsyncIterator[None]:
        yield
        portal.database.close()

    app = FastAPI(title=portal.challenge.title, docs_url=None, redoc_url=None, openapi_url=None, lifespan=run)
    # A redirection would lead to the host that the request names, whoever's that is.
    app.router.redirect_slashes = False
    app.state.portal = portal
    app.include_router(api.router)
    app.include_router(api.monitoring)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")
    # Last, because the address of its form is one part, whatever that is.
    app.include_router(pages.router)

    @app.middleware("http")
    async def answer(request: Request, go_on: RequestResponseEndpoint) -> Response:
        """Refuse or answer a request; all answers have headers, and are counted."""
        response = await refuse(request, portal) or await go_on(request)
        for name, value in headers.items():
            response.headers.setdefault(name, value)
        if not request.url.path.startswith("/static/"):
            response.headers.setdefault("Cache-Control", "no-store")
        route = getattr(request.scope.get("route"), "path", "other")
        portal.responses.labels(route, str(response.status_code)).inc()
        return response

    for kind in (HTTPException, RequestValidationError, ClientDisconnect, NotTakenError, *UNAVAILABLE, Exception):
        app.add_exception_handler(kind, answer_error)
    return app


async def refuse(request: Request, portal: Portal) -> Response | None:
    """Return the answer to a request of another site's page, to another host or with a large body; else None."""
    # A form also sends other fields and boundaries, and browsers double the line ends of the document.
    limit = 2 * int(portal.settings.max_submission_bytes) + 16_384
    length, hosts = request.headers.get("content-length", "0"), portal.settings.hosts
    if hosts and _host(request) not in hosts:
        return error_response(request, 400, "The request is for another host than the portal's.")
    if _is_cross_site(request, portal):
        return error_response(request, 403, "The request came from a page of another site.")
    if "transfer-encoding" in request.headers or not length.isdecimal():
        # The length is needed before the body: servers take no more bytes than it says.
        return error_response(request, 411, "The request has no Content-Length.", CLOSE)
    if int(length) <= limit:
        return None

    if int(length) <= MAX_DISCARDED:
        with suppress(ClientDisconnect):
            async for _ in request.stream():
                pass
    return error_response(request, 413, f"The request is larger than the limit of {limit:,} bytes.", CLOSE)


def _host(request: Request) -> str | None:
    with suppress(ValueError):
        return urlsplit(f"//{request.headers.get('host', '')}").hostname
    return None


def _is_cross_site(request: Request, portal: Portal) -> bool:
    """Return whether another site's page had the browser send a request that changes something."""
    if request.method not in UNSAFE_METHODS:
        return False
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        return True
    return request.headers.get("origin", portal.address(request)).lower() != portal.address(request).lower()


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
    page = pages.render(request, "problem.html", None, status, reason=reason, code=status)
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
