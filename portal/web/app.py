"""The web server's application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.staticfiles import StaticFiles

from headstart.portal.records.database import UNAVAILABLE
from headstart.portal.settings import Settings
from headstart.portal.web import api, error_responses, pages
from headstart.portal.web.middleware import BodyLimitMiddleware, CommonMiddleware
from headstart.portal.web.state import Portal


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
        portal.database.create_tables()
        yield
        portal.close()

    app = FastAPI(title=portal.challenge.title, docs_url=None, redoc_url=None, openapi_url=None, lifespan=run)
    app.state.portal = portal
    app.include_router(api.router)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")
    app.include_router(pages.router)

    # A form also sends other fields and boundaries, and browsers double the line ends of the document.
    app.add_middleware(BodyLimitMiddleware, limit=2 * int(settings.max_submission_bytes) + 16_384)
    app.add_middleware(CommonMiddleware, portal=portal)

    app.add_exception_handler(HTTPException, error_responses.on_http_error)
    app.add_exception_handler(RequestValidationError, error_responses.on_invalid_argument)
    app.add_exception_handler(ClientDisconnect, error_responses.on_disconnect)
    for kind in UNAVAILABLE:
        app.add_exception_handler(kind, error_responses.on_database_error)
    app.add_exception_handler(Exception, error_responses.on_defect)
    return app
