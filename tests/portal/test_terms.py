"""Terms that are accepted before a person's first submission, by version."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from threading import Thread
from typing import Any

from sqlalchemy import select

from headstart.portal.records.accounts import add_team, find_account
from headstart.portal.records.database import Database
from headstart.portal.records.tables import AcceptanceRow
from headstart.portal.records.terms import accept_terms
from headstart.tests.material.portals import Site, blue, make_settings, read_rules

OpenSite = Callable[..., Site]
TERMS = {"version": "2026-01", "text": "Be kind.\n\nShare <your> code."}


def acceptances(site: Site) -> list[tuple[str, str, str]]:
    with site.database.reading() as session:
        rows = session.scalars(select(AcceptanceRow).order_by(AcceptanceRow.id)).all()
    assert all(abs((datetime.now(UTC) - row.at).total_seconds()) < 60 for row in rows)
    return [(row.phase, row.version, row.text_sha256) for row in rows]


def send(site: Site, **fields: str) -> Any:
    page = site.client.get("/blue").text.partition("<main")[2]
    hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
    return site.client.post("/blue", data={**hidden, "document": blue("owl", "lark").decode(), **fields})


def test_programs_accept_before_they_submit(open_site: OpenSite) -> None:
    site = open_site({"terms": TERMS})
    assert site.read("/api/challenge")["terms"] == TERMS
    refused = site.submit(blue("owl", "lark"))
    assert refused.status_code == 403
    assert "accept version '2026-01' first, in the form or by POST /api/terms" in refused.json()["error"]

    def accept(version: str, **headers: str) -> Any:
        return site.client.post("/api/terms", json={"version": version}, headers=headers)

    assert accept("2026-01").status_code == 401
    wrong = accept("2025", **site.headers())
    assert (wrong.status_code, "'2026-01'" in wrong.json()["error"]) == (409, True)
    assert site.client.post("/api/terms", json={}, headers=site.headers()).status_code == 400
    for _ in range(2):
        assert accept("2026-01", **site.headers()).json() == {"phase": "small", "accepted": "2026-01"}
    assert acceptances(site) == [("small", "2026-01", sha256(TERMS["text"].encode()).hexdigest())]
    assert site.submit(blue("owl", "lark"), key="one").status_code == 201
    # Each person accepts for themselves.
    assert site.submit(blue("owl", "lark"), token=add_team(site.database, "Larks")).status_code == 403


def test_another_version_is_asked_for_again(open_site: OpenSite, tmp_path: Path) -> None:
    site = open_site({"terms": TERMS})
    site.client.post("/api/terms", json={"version": "2026-01"}, headers=site.headers())
    assert site.submit(blue("owl", "lark"), key="one").status_code == 201
    later = Site(make_settings(tmp_path, {"terms": {**TERMS, "version": "2026-02"}}), site.token)
    with later.client:
        assert later.submit(blue("owl", "wren")).status_code == 403
        # What was taken in is answered again.
        assert later.submit(blue("owl", "lark"), key="one").status_code == 200
        later.client.post("/api/terms", json={"version": "2026-02"}, headers=later.headers())
        assert later.submit(blue("owl", "wren")).status_code == 201
        assert [version for _, version, _ in acceptances(later)] == ["2026-01", "2026-02"]


def test_the_form_asks_once(open_site: OpenSite) -> None:
    site = open_site({"terms": TERMS})
    assert "Share" not in site.client.get("/blue").text
    site.log_in()
    page = site.client.get("/blue").text
    assert "<p>Be kind.</p>" in page
    assert "Share &lt;your&gt; code." in page
    for fields in ({}, {"terms": "2025"}):
        refused = send(site, **fields)
        assert refused.status_code == 400
        assert "Read and accept the terms first." in refused.text
        # What was written is still there.
        assert "&#34;owl&#34;" in refused.text
    assert send(site, action="check").status_code == 200
    assert acceptances(site) == []
    assert send(site, terms="2026-01").status_code == 303
    assert len(acceptances(site)) == 1
    assert "Be kind" not in site.client.get("/blue").text
    assert send(site, document=blue("owl", "wren").decode()).status_code == 303


def test_without_terms_nothing_is_asked(site: Site) -> None:
    answer = site.client.post("/api/terms", json={"version": "1"}, headers=site.headers())
    assert (answer.status_code, "there are none" in answer.text) == (409, True)
    site.log_in()
    assert send(site).status_code == 303


def test_acceptances_that_come_at_once_are_one(database: Database) -> None:
    challenge, now = read_rules(terms=TERMS), datetime.now(UTC)
    account = find_account(database, add_team(database, "Owls"))
    assert account is not None
    errors: list[Exception] = []

    def accept() -> None:
        try:
            accept_terms(database, account.id, challenge, "2026-01", now)
        except Exception as error:
            errors.append(error)

    threads = [Thread(target=accept) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database.reading() as session:
        assert len(session.scalars(select(AcceptanceRow)).all()) == 1
    assert errors == []
