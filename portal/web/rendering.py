"""Pages, made of templates and of values that all pages share."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse

from headstart.portal.records.accounts import Team
from headstart.portal.web.sessions import form_proof
from headstart.portal.web.state import Portal
from headstart.portal.web.template_files import TEMPLATES, local_times


def render(request: Request, name: str, team: Team | None, *, status: int = 200, **context: Any) -> HTMLResponse:
    """Render a page.

    Args:
        request: The request.
        name: Name of the template.
        team: The participant who asks.
        status: Status of HTTP.
        context: Further values of the template.
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
