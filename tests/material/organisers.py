"""Organisers of a portal, and the forms that they send."""

import hashlib
import re
from datetime import UTC, datetime
from typing import Any

from headstart.portal.records.database import Database
from headstart.portal.records.tables import AccountRow
from headstart.tests.material.portals import Site


def add_organiser(database: Database, name: str = "Ada") -> str:
    """Add an organiser, and return the token."""
    token = f"token of {name}"
    digest = hashlib.sha256(token.encode()).hexdigest()
    with database.writing() as session:
        session.add(AccountRow(name=name, is_organiser=True, token_sha256=digest, added=datetime.now(UTC)))
    return token


def read_proof(site: Site, path: str = "/desk/run/freeze") -> str:
    """Return the hidden field of the forms of whoever is logged in."""
    found = re.search(r'name="proof" value="(\w+)"', site.client.get(path).text)
    assert found is not None
    return found[1]


def run_at_desk(site: Site, words: str, **fields: str) -> Any:
    """Send the form of a command as the organiser who is logged in."""
    path = f"/desk/run/{words.replace(' ', '/')}"
    return site.client.post(path, data={"proof": read_proof(site, path), **fields})
