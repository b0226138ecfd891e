"""Pages are made of templates, in which every text is escaped."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from portal.accounts import Team
from portal.sessions import form_proof
from portal.state import Portal

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render(request: Request, name: str, team: Team | None, *, status: int = 200, **context: Any) -> HTMLResponse:
    """Make a page.

    Args:
        request: What was asked.
        name: Name of the template.
        team: Who asked.
        status: Of HTTP.
        context: What the template needs beside what all do.
    """
    portal: Portal = request.app.state.portal
    zone = ZoneInfo(portal.challenge.time_zone)

    def local(time: datetime) -> str:
        return f"{time.astimezone(zone):%Y-%m-%d %H:%M:%S} {portal.challenge.time_zone}"

    shared = {
        "challenge": portal.challenge,
        "team": team,
        "path": request.url.path,
        "proof": form_proof(request),
        "is_over": portal.is_over(),
        "local": local,
    }
    return HTMLResponse(TEMPLATES.get_template(name).render(**shared, **context), status)
