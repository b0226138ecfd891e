"""Of refused documents little is kept, and a team can submit a limited number of bytes on one day."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import undefer

from headstart.portal.records.tables import SubmissionRow
from headstart.tests.material.portals import Site, blue
from headstart.tests.portal.conftest import OpenSite


def size(site: Site) -> int:
    with site.database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    return Path(f"{site.database.url.database}").stat().st_size


@pytest.mark.slow
def test_refused_documents_of_a_megabyte_take_little_room(open_site: OpenSite) -> None:
    site = open_site(bytes_per_day=10**9)
    before = size(site)
    for number in range(40):
        names = [f"crow-{number}-{index:05}" + "x" * 100 for index in range(8_200)]
        content = blue(*names)
        assert 900_000 < len(content) < 1_000_000
        answer = site.submit(content)
        assert answer.status_code == 422
        problems = answer.json()["problems"]
        assert problems[0]["pointer"] == "/models/0"
        assert problems[-1]["rule"] == "and more problems; check the document to list them"
    assert size(site) - before < 1_000_000
    with site.database.reading() as session:
        row = session.scalars(select(SubmissionRow).options(undefer("*")).order_by(SubmissionRow.id.desc())).first()
    assert row is not None
    assert (row.content, row.size) == (None, len(content))


def test_a_valid_document_is_kept_whole(site: Site) -> None:
    site.submit(blue("owl", "lark"))
    with site.database.reading() as session:
        row = session.scalars(select(SubmissionRow).options(undefer("*"))).one()
    assert row.content == blue("owl", "lark")


def test_bytes_of_a_day_are_limited_refused_ones_among_them(open_site: OpenSite) -> None:
    site = open_site(bytes_per_day=1000)
    assert site.submit(b" " * 600).status_code == 422
    answer = site.submit(blue("owl", "lark") + b" " * 600)
    assert answer.status_code == 403
    assert "of 1,000" in json.loads(answer.text)["error"]
    assert site.submit(blue("owl", "lark")).status_code == 201
    with site.database.writing() as session:
        session.execute(update(SubmissionRow).values(received=datetime.now(UTC) - timedelta(days=1)))
    assert site.submit(blue("owl", "lark") + b" " * 600).status_code == 201


def test_the_problems_that_are_kept_of_small_documents_count_too(open_site: OpenSite) -> None:
    """A document of 400 bytes has problems of 10,000: many a day would fill the disk otherwise."""
    site = open_site(bytes_per_day=50_000)
    content = json.dumps({"models": [1] * 130}).encode()
    assert len(content) < 420
    statuses = [site.submit(content).status_code for _ in range(8)]
    assert statuses == [422] * 5 + [403] * 3
