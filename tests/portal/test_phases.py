"""Phases: what is taken in before, in and between them, and what their pages say."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headstart.output.errors import UserError
from headstart.portal.phases import read_phases
from headstart.portal.records.accounts import add_team
from headstart.portal.settings import Settings
from headstart.portal.web import submitting
from headstart.portal.work.queue import claim
from headstart.portal.work.scoring import Scorer
from headstart.tests.material.organisers import read_proof
from headstart.tests.material.phases import make_two_phases
from headstart.tests.material.portals import Site, blue, make_settings


def at(hours: float) -> str:
    return (datetime.now(UTC) + timedelta(hours=hours)).isoformat()


def in_first(folder: Path) -> Settings:
    return make_two_phases(folder, {"deadline": at(24)}, {"opens": at(48), "deadline": at(72)})


def between(folder: Path) -> Settings:
    return make_two_phases(folder, {"deadline": at(-1)}, {"opens": at(24), "deadline": at(48)})


def in_second(folder: Path) -> Settings:
    return make_two_phases(folder, {"deadline": at(-2)}, {"opens": at(-1), "deadline": at(24)})


def after(folder: Path) -> Settings:
    return make_two_phases(folder, {"deadline": at(-3)}, {"opens": at(-2), "deadline": at(-1)})


def test_a_challenge_passes_through_its_phases(tmp_path: Path) -> None:
    token, seen = "", []
    for settings in (in_first, between, in_second, after):
        with (site := Site(settings(tmp_path), token)).client:
            site.token = token = token or add_team(site.database, "Owls")
            answer = site.submit(blue("owl", "lark"))
            site.work()
            challenge = site.client.get("/api/challenge").json()
            assert [each["name"] for each in challenge["phases"]] == ["development", "final"]
            boards = [
                [line["submission"] for line in site.read(f"/api/leaderboard?team=blue&phase={name}")]
                for name in ("development", "final")
            ]
            record = answer.json()
            seen.append((challenge["name"], challenge["open"], answer.status_code, record["phase"], boards))
            if settings is between:
                assert "submissions open at" in record["problems"][0]["rule"]
                for path in ("/", "/blue"):
                    assert "Submissions open on" in site.client.get(path).text
    assert seen == [
        ("development", True, 201, "development", [[1], []]),
        ("final", False, 422, "final", [[1], []]),
        # Attempts and equal documents are those of the phase.
        ("final", True, 201, "final", [[1], [3]]),
        ("final", False, 422, "final", [[1], [3]]),
    ]
    with site.client:
        site.log_in()
        assert 'data-label="Phase">development<' in site.client.get("/submissions").text
        assert "<dd>development</dd>" in site.client.get("/submissions/1").text
        page = site.client.get("/leaderboard?phase=development").text
        assert 'id="blue-1"' in page


def test_the_overview_names_all_phases_and_the_current_one(tmp_path: Path) -> None:
    with (site := Site(in_second(tmp_path))).client:
        page = site.client.get("/").text
    assert page.count("<time") >= 4
    assert "The final phase (current)" in page
    assert "The development phase<" in page


def test_one_phase_without_dates_says_nothing_of_phases(tmp_path: Path) -> None:
    with (site := Site(make_settings(tmp_path, {}))).client:
        site.token = add_team(site.database, "Owls")
        site.submit(blue("owl", "lark"))
        site.log_in()
        pages = [site.client.get(path).text for path in ("/", "/submissions", "/submissions/1", "/leaderboard")]
    assert not any("Phase" in page for page in pages)


def test_nothing_is_taken_in_before_the_first_opening(tmp_path: Path) -> None:
    with (site := Site(make_settings(tmp_path, {"opens": at(1), "deadline": at(2)}))).client:
        site.token = add_team(site.database, "Owls")
        assert site.submit(blue("owl", "lark")).status_code == 422
        assert not site.client.get("/api/challenge").json()["open"]
        assert "Submissions open on" in site.client.get("/").text
        assert site.client.post("/api/validate?team=blue", content=blue("owl", "lark")).json()["valid"]


def test_a_document_belongs_to_the_phase_in_which_it_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deadline = datetime.now(UTC) + timedelta(hours=1)
    settings = make_two_phases(tmp_path, {"deadline": deadline.isoformat()}, {})

    class LastMoment(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return deadline

    with (site := Site(settings)).client:
        site.token = add_team(site.database, "Owls")
        monkeypatch.setattr(submitting, "datetime", LastMoment)
        assert site.submit(blue("owl", "lark")).json()["phase"] == "development"


def test_teams_decide_until_the_deadline_of_the_submissions_phase(tmp_path: Path) -> None:
    with (site := Site(in_first(tmp_path))).client:
        site.token = add_team(site.database, "Owls")
        site.submit(blue("owl", "lark"))
        site.work()
        site.log_in()
        assert "Withdraw it" in site.client.get("/submissions/1").text
    with (late := Site(in_second(tmp_path), site.token)).client:
        late.log_in()
        assert "Withdraw it" not in late.client.get("/submissions/1").text
        answer = late.client.post("/api/submissions/1/withdraw", headers=late.headers())
        assert (answer.status_code, "the deadline has passed" in answer.json()["error"]) == (409, True)


def test_one_process_scores_the_submissions_of_every_phase(tmp_path: Path) -> None:
    with (site := Site(in_first(tmp_path))).client:
        site.token = add_team(site.database, "Owls")
        site.submit(blue("owl", "lark"))
    with (later := Site(in_second(tmp_path), site.token)).client:
        later.submit(blue("owl", "lark"))
        scorer = Scorer(later.settings)
        jobs = [claim(later.database, "test", scorer.bases) for _ in range(2)]
        assert [job and job.phase for job in jobs] == ["development", "final"]
        for job in jobs:
            assert job is not None
            # These networks do not exist; an unknown phase would be named as such.
            assert "phase" not in scorer(job).error


@pytest.mark.parametrize(
    ("first", "second"),
    [({}, {}), ({}, {"deadline": at(1)}), ({"deadline": "2030-01-01T00:00Z"}, {"deadline": "2030-01-01T01:00+01:00"})],
)
def test_a_phase_that_would_never_begin_is_refused(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any]
) -> None:
    with pytest.raises(UserError, match="'final' never begins; give 'development' before it an earlier"):
        read_phases(make_two_phases(tmp_path, first, second))


def test_a_form_of_a_phase_that_has_ended_submits_nothing_to_the_next(tmp_path: Path) -> None:
    with (site := Site(in_second(tmp_path))).client:
        site.token = add_team(site.database, "Owls")
        site.log_in()
        proof = read_proof(site, "/blue")
        form = {"proof": proof, "key": "1", "document": blue("owl", "lark").decode(), "action": "submit"}
        answer = site.client.post("/blue", data={**form, "phase": "development"})
        assert (answer.status_code, "to enter the document in The final phase" in answer.text) == (400, True)
        assert site.read("/api/submissions") == []
        assert 'name="phase" value="final"' in answer.text
        assert site.client.post("/blue", data={**form, "phase": "final"}).status_code == 303
