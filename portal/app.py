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

from headstart.portal import api, pages
from headstart.portal.body_limit import BodyLimit
from headstart.portal.database import AWAY
from headstart.portal.front import Front
from headstart.portal.refusals import show_away, show_defect, show_gone, show_refusal, show_wrong_request
from headstart.portal.settings import Settings
from headstart.portal.state import Portal


def create_app(settings: Settings) -> FastAPI:
    """Make the application that serves a portal.

    Args:
        settings: The organiser's.

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
    # A form's other fields and boundaries come beside the document, whose line ends browsers double.
    app.add_middleware(BodyLimit, limit=2 * int(settings.max_submission_bytes) + 16_384)
    app.add_middleware(Front, portal=portal)
    app.add_exception_handler(HTTPException, show_refusal)
    app.add_exception_handler(RequestValidationError, show_wrong_request)
    app.add_exception_handler(ClientDisconnect, show_gone)
    for kind in AWAY:
        app.add_exception_handler(kind, show_away)
    app.add_exception_handler(Exception, show_defect)
    return app
