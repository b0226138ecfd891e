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
from headstart.portal.intake import NotTakenError
from headstart.portal.settings import Settings
from headstart.portal.web import api, pages
from headstart.portal.web.responses import answer_error
from headstart.portal.web.security import SecurityMiddleware
from headstart.portal.web.state import Portal


def create_app(settings: Settings) -> FastAPI:
    """Create the application that serves a portal.

    Args:
        settings: The organiser's settings.

    Raises:
        UserError: A document that they name cannot be read, or the tables are not the portal's.
    """
    portal = Portal(settings)

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
    # The last one: its form for either team of the contract has an address of one part, whatever that is.
    app.include_router(pages.router)
    # A form also sends other fields and boundaries, and browsers double the line ends of the document.
    app.add_middleware(SecurityMiddleware, portal=portal, limit=2 * int(settings.max_submission_bytes) + 16_384)

    for kind in (HTTPException, RequestValidationError, ClientDisconnect, NotTakenError, *UNAVAILABLE, Exception):
        app.add_exception_handler(kind, answer_error)
    return app
