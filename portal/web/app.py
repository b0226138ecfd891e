"""The web server's application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.staticfiles import StaticFiles

from headstart.portal.database import UNAVAILABLE
from headstart.portal.settings import Settings
from headstart.portal.web import api, pages
from headstart.portal.web.responses import HEADERS, always_answer, on_http_error, on_invalid_argument
from headstart.portal.web.security import SecurityMiddleware
from headstart.portal.web.state import WAIT, Portal

UNAVAILABLE_MESSAGE = "The portal cannot reach its database at present. Nothing was changed. Try again in a minute."
DEFECT_MESSAGE = "The portal made an error. The organisers can find it in the server's output."


def create_app(settings: Settings) -> FastAPI:
    """Create the application that serves a portal.

    Args:
        settings: The organiser's settings.

    Raises:
        UserError: A document that they name cannot be read.
    """
    portal = Portal(settings)

    @asynccontextmanager
    async def run(_: FastAPI) -> AsyncIterator[None]:
        portal.open()
        yield
        portal.database.close()

    app = FastAPI(title=portal.challenge.title, docs_url=None, redoc_url=None, openapi_url=None, lifespan=run)
    # A redirection would lead to the host that the request names, whoever's that is.
    app.router.redirect_slashes = False
    app.state.portal = portal
    app.include_router(api.router)
    app.include_router(api.monitoring)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")
    # The last one: its form for either team of the contract has an address of one part, whatever that is.
    app.include_router(pages.router)
    # A form also sends other fields and boundaries, and browsers double the line ends of the document.
    app.add_middleware(SecurityMiddleware, portal=portal, limit=2 * int(settings.max_submission_bytes) + 16_384)

    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(RequestValidationError, on_invalid_argument)
    app.add_exception_handler(ClientDisconnect, always_answer(400, "The request ended before its body did."))
    for kind in UNAVAILABLE:
        app.add_exception_handler(kind, always_answer(503, UNAVAILABLE_MESSAGE, WAIT))
    # The handler of defects runs outside of the middleware that adds headers. The server prints the traceback.
    app.add_exception_handler(Exception, always_answer(500, DEFECT_MESSAGE, HEADERS))
    return app
