"""Pages are made of templates, and of what all of them show."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse

from headstart.portal.accounts import Team
from headstart.portal.sessions import form_proof
from headstart.portal.state import Portal
from headstart.portal.template_files import TEMPLATES, local_times


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
    shared = {
        "challenge": portal.challenge,
        "team": team,
        "path": request.url.path,
        "proof": form_proof(request),
        "is_over": portal.is_over(),
        "local": local_times(portal.challenge),
    }
    return HTMLResponse(TEMPLATES.get_template(name).render(**shared, **context), status)
