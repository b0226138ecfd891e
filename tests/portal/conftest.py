"""A portal of a small challenge, whose submissions are scored by a stub."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from headstart.portal.database import Database
from headstart.tests.material.portals import Site, blue, make_settings, red
from headstart.tests.material.postgresql import Server, can_run, serve_postgresql

OpenSite = Callable[..., Site]


@pytest.fixture(scope="session", autouse=True)
def no_database_of_the_environment() -> Iterator[None]:
    """Keep the tests out of a database that the environment names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DATABASE_URL", raising=False)
        yield


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Open a portal that many tests read: its Owls have submissions 1 to 4 of every state, its Larks number 5."""
    folder = tmp_path_factory.mktemp("shown")
    rules = {"deadline": "2999-12-31T23:59:59Z", "time_zone": "Asia/Tokyo", "description": "Owls & larks."}
    with (site := Site(make_settings(folder, rules))).client:
        site.token = site.add_team("<b>Owls</b>")
        site.submit(blue("owl", "lark"))
        site.submit(red(0, 1, 2), "red", site.add_team("Red owls"))
        site.submit(blue("owl", "Owl", "crow"))
        site.submit(blue("owl", "lark", "wren"), token=site.add_team("Larks"))
        site.work()
        site.submit(blue("owl", "rook"))
        yield site


@pytest.fixture
def open_site(tmp_path: Path) -> Iterator[OpenSite]:
    """Return a function that opens a portal with changed rules and settings; its team has a token."""
    with ExitStack() as opened:

        def open_one(rules: dict[str, Any] | None = None, **settings: Any) -> Site:
            site = Site(make_settings(tmp_path, rules or {}, **settings))
            opened.enter_context(site.client)
            site.token = site.add_team("Owls")
            return site

        yield open_one


@pytest.fixture
def site(open_site: OpenSite) -> Site:
    """Open a portal with a team and its token."""
    return open_site()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """Run a PostgreSQL server."""
    if not can_run():
        pytest.skip("PostgreSQL is not installed, or this is root without runuser and a user postgres")
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
