"""The interface for programs: submitting, following and ranking submissions."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headstart.contract.versions import json_schemas
from headstart.portal.records.accounts import add_team, find_person, find_team, renew_keys, revoke_team
from headstart.portal.records.log import read_whole_log
from headstart.portal.web import submitting
from headstart.tests.material.portals import Site, blue, red
from headstart.tests.material.stub_scores import MODELS

OpenSite = Callable[..., Site]


def test_a_submission_is_followed_from_the_queue_to_the_leaderboard(open_site: OpenSite, database_url: str) -> None:
    site = open_site(database=database_url)
    first, second = site.submit(blue("owl", "lark")), site.submit(red(0, 1, 2), "red")
    assert (first.status_code, second.status_code) == (201, 201)
    assert [each.json()["place_in_queue"] for each in (first, second)] == [1, 2]
    assert site.read("/api/leaderboard?team=blue") == []
    assert [job.submission_id for job in site.work()] == [1, 2]
    document = site.read("/api/submissions")
    assert [each["id"] for each in document] == [2, 1]
    assert {each["state"] for each in document} == {"scored"}
    assert document[1]["score"] == 1 / len(blue("owl", "lark"))
    board = site.read("/api/leaderboard?team=blue")
    assert [(line["rank"], line["participant"], line["submission"]) for line in board] == [(1, "Owls", 1)]
    assert board[0]["debiased_score"] == board[0]["score"] / 2
    texts = [line["text"] for line in site.read("/api/log")]
    assert texts[0].startswith("Submission 2 of Owls (Red Team): scored, ")
    assert "Submission 1 of Owls (Blue Team): received." in texts


def test_all_problems_of_a_refused_submission_are_named_and_kept(site: Site) -> None:
    answer = site.submit(blue("owl", "Owl", "crow"))
    assert answer.status_code == 422
    document = answer.json()
    assert document["state"] == "refused"
    assert [problem["pointer"] for problem in document["problems"]] == ["/models/1", "/models/1", "/models/2"]
    assert site.work() == []
    assert site.read("/api/submissions/1")["problems"] == document["problems"]
    checked = site.client.post("/api/validate?team=blue", content=blue("owl", "Owl", "crow")).json()
    assert (checked["valid"], checked["problems"]) == (False, document["problems"])


@pytest.mark.parametrize("content", [b"", b"\xff", b"{", b"[" * 100_000, b'{"models": ["owl", "lark"]}' + b" " * 100])
def test_whatever_is_sent_is_answered(site: Site, content: bytes) -> None:
    answer = site.submit(content)
    assert answer.status_code == (201 if content.startswith(b'{"models"') else 422)


def test_a_submission_of_the_other_team_is_refused(site: Site) -> None:
    assert "Red Team submission is expected" in site.submit(blue("owl", "lark"), "red").json()["problems"][0]["rule"]


def test_a_submission_sent_twice_with_one_key_is_accepted_once(site: Site) -> None:
    first, again = (site.submit(blue("owl", "lark"), key="one") for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    assert site.submit(blue("owl", "lark"), key="two").json()["id"] == 2


def test_tokens(site: Site) -> None:
    assert site.client.get("/api/submissions").status_code == 401
    assert site.submit(blue("owl", "lark"), token="wrong").status_code == 401
    other = add_team(site.database, "Larks")
    assert site.submit(blue("owl", "lark")).status_code == 201
    assert site.client.get("/api/submissions/1", headers=site.headers(other)).status_code == 404
    assert site.client.get("/api/submissions/1").status_code == 404
    with site.database.writing() as session:
        revoke_team(session, datetime.now(UTC), find_team(session, "owls"))
    assert site.submit(blue("owl", "lark")).status_code == 401
    with site.database.writing() as session:
        team = find_team(session, "Owls")
        team.revoked = None
        keys = renew_keys(session, datetime.now(UTC), find_person(session, team, None), "a test")
    assert site.submit(blue("owl", "lark"), token=keys.token).status_code == 201
    assert site.submit(blue("owl", "lark")).status_code == 401


def test_quotas_count_what_was_taken_alone(open_site: OpenSite) -> None:
    site = open_site({"teams": {"blue": {"submissions_per_day": 2}, "red": {}}})
    assert site.submit(blue("owl", "crow")).status_code == 422
    assert [site.submit(blue("owl", "lark")).status_code for _ in range(3)] == [201, 201, 422]
    last = site.read("/api/submissions")[0]
    assert last["problems"][0]["rule"].startswith("all of the 2 submissions allowed on")
    assert site.submit(red(0, 1), "red").status_code == 201
    assert site.submit(blue("owl", "lark"), token=add_team(site.database, "Larks")).status_code == 201


def test_after_the_deadline(open_site: OpenSite) -> None:
    site = open_site({"deadline": (datetime.now(UTC) - timedelta(days=1)).isoformat()})
    assert site.submit(blue("owl", "lark")).json()["problems"][0]["rule"].startswith("the deadline was ")
    assert not site.read("/api/challenge")["open"]


def test_a_submission_in_time_is_not_late_because_others_are_validated_first(
    open_site: OpenSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadline = datetime.now(UTC) + timedelta(seconds=30)
    site = open_site({"deadline": deadline.isoformat()})

    class Later(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return deadline + timedelta(seconds=1)

    async def find_slowly(content: bytes, phase: str, track: str, submitted: bool) -> list[dict[str, str]]:
        monkeypatch.setattr(submitting, "datetime", Later)
        return []

    site.client.app.state.portal.validator.find_problems = find_slowly  # type: ignore[attr-defined] # an application
    assert [site.submit(blue("owl", "lark")).status_code for _ in range(2)] == [201, 422]


@pytest.mark.parametrize(("standing", "stands"), [("best", 2), ("last", 3)])
def test_the_score_that_stands(open_site: OpenSite, standing: str, stands: int) -> None:
    site = open_site({"teams": {"blue": {"standing": standing}}})
    other = add_team(site.database, "Larks")
    # The stub's score falls with the document's length.
    for models in (["owl", "lark", "wren"], ["owl", "lark"], MODELS):
        site.submit(blue(*models))
    site.submit(blue("wren", "lark", "rook"), token=other)
    site.work()
    board = site.read("/api/leaderboard?team=blue")
    own = next(line for line in board if line["participant"] == "Owls")
    assert (own["submission"], own["submissions"]) == (stands, 3)
    assert [line["rank"] for line in board] == [1, 2]
    assert board[0]["score"] > board[1]["score"]


@pytest.mark.parametrize(("ties", "ranks"), [("shared", [1, 1, 3]), ("earliest", [1, 2, 3])])
def test_equal_scores_are_ranked_by_the_rules(open_site: OpenSite, ties: str, ranks: list[int]) -> None:
    site = open_site({"ties": ties})
    for name in ("Larks", "Wrens"):
        site.submit(blue("owl", "lark"), token=add_team(site.database, name))
    site.submit(blue("owl", "lark", "wren"))
    site.work()
    board = site.read("/api/leaderboard?team=blue")
    assert [(line["rank"], line["participant"]) for line in board] == list(
        zip(ranks, ("Larks", "Wrens", "Owls"), strict=True)
    )
    assert ("Equal scores share a rank." in site.client.get("/leaderboard").text) == (ties == "shared")


def test_a_team_that_asks_too_often_has_to_wait(open_site: OpenSite) -> None:
    site = open_site(submissions_per_minute=2, validations_per_minute=1)
    answers = [site.submit(blue("owl", "lark")) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201, 201, 429]
    assert "Retry-After" in answers[-1].headers
    assert site.submit(blue("owl", "lark"), token=add_team(site.database, "Larks")).status_code == 201
    checks = [site.client.post("/api/validate?team=blue", content=b"{}").status_code for _ in range(2)]
    assert checks == [200, 429]


def test_bodies_are_measured_before_they_are_read(open_site: OpenSite) -> None:
    site = open_site(max_submission_bytes=100)
    assert site.submit(b" " * 101).status_code == 413
    message = "A submission of Owls (Blue Team): refused, has 101 bytes, limit 100"
    assert read_whole_log(site.database, 1)[0].text == message
    assert message not in site.client.get("/api/log").text
    assert site.submit(b" " * 20_000).status_code == 413
    assert site.read("/api/submissions") == []


def test_schemas_health_and_metrics(site: Site) -> None:
    assert site.read("/api/schemas/red_submission") == json_schemas("1.1")["red_submission"]
    assert site.read("/api/schemas/red_submission?version=1.0") == json_schemas("1.0")["red_submission"]
    assert site.client.get("/api/schemas/none").status_code == 404
    assert site.read("/health")["status"] == "ok"
    site.submit(blue("owl", "lark"))
    site.submit(blue("owl"))
    text = site.client.get("/metrics").text
    assert 'headstart_submissions{state="queue"} 1.0' in text
    assert 'headstart_submissions{state="refused"} 1.0' in text
    assert 'headstart_requests_total{route="/api/submissions",status="201"} 1.0' in text


def test_metrics_say_that_the_database_is_away(site: Site) -> None:
    assert "headstart_database_up 1.0" in site.client.get("/metrics").text
    site.database.close()
    file = Path(site.settings.folder, "portal.sqlite3")
    file.rename(file.with_name("kept"))
    file.mkdir()
    assert site.client.get("/health").status_code == 503
    answer = site.client.get("/metrics")
    assert answer.status_code == 200
    assert "headstart_database_up 0.0" in answer.text
    assert 'headstart_submissions{state="queue"} NaN' in answer.text


def test_a_sender_that_goes_away_is_no_defect(site: Site) -> None:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "scheme": "http",
        "path": "/api/validate",
        "query_string": b"team=blue",
        "headers": [(b"content-length", b"10")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }
    asyncio.run(site.client.app(scope, receive, send))  # type: ignore[arg-type] # of ASGI
    assert sent[0]["status"] == 400
