"""A portal of a small challenge, whose submissions are scored by a stub."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from headstart.portal.records.accounts import add_team
from headstart.portal.records.database import Database
from headstart.portal.web import state
from headstart.tests.material.portals import InProcessValidator, Site, make_settings
from headstart.tests.material.postgresql import Server, serve_postgresql, why_not

OpenSite = Callable[..., Site]


@pytest.fixture(autouse=True)
def validated_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Validate in this process, because another takes a second to start; it has tests of its own."""
    monkeypatch.setattr(state, "Validator", InProcessValidator)


@pytest.fixture
def open_site(tmp_path: Path) -> Iterator[OpenSite]:
    """Return a function that opens a portal with changed rules and settings; its team has a token."""
    with ExitStack() as opened:

        def open_one(rules: dict[str, Any] | None = None, **settings: Any) -> Site:
            site = Site(make_settings(tmp_path, rules or {}, **settings))
            opened.enter_context(site.client)
            site.token = add_team(site.database, "Owls")
            return site

        yield open_one


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """Run a PostgreSQL server."""
    if reason := why_not():
        pytest.skip(reason)
    with serve_postgresql() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of an empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'portal.sqlite3'}"
    server: Server = request.getfixturevalue("postgresql")
    return server.make_database()


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """Open an empty database of either kind."""
    database = Database(database_url)
    database.create_tables()
    yield database
    database.close()


@pytest.fixture
def site(open_site: OpenSite) -> Site:
    """Open a portal with a team and its token."""
    return open_site()
