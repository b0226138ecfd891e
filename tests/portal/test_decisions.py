"""Decisions about submissions: withdrawn and chosen by teams, disqualified and cancelled by organisers."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from jsonargparse import Namespace
from sqlalchemy import select

from headstart.contract.challenge import Challenge
from headstart.output.errors import UserError
from headstart.portal.commands.command import Desk
from headstart.portal.commands.table import COMMANDS
from headstart.portal.records.accounts import add_team, find_account
from headstart.portal.records.database import Database
from headstart.portal.records.decisions import cancel, choose, disqualify, reinstate, withdraw
from headstart.portal.records.quotas import counted_times
from headstart.portal.records.tables import ScoringRow
from headstart.portal.work.intake import score_again, store_submission
from headstart.portal.work.queue import Job, Outcome, claim, failed, finish
from headstart.tests.material.portals import Site, blue, make_phase, make_settings, read_rules
from headstart.tests.material.stub_scores import stub_score
from headstart.tests.portal.conftest import OpenSite

CHOSEN: dict[str, Any] = {"teams": {"blue": {"standing": "chosen"}, "red": {}}}


def submit(database: Database, count: int, held_out: bool = False) -> int:
    account = find_account(database, add_team(database, "Owls"))
    assert account is not None
    for number in range(count):
        content = blue("owl", "lark")
        phase, now = make_phase(held_out), datetime.now(UTC)
        store_submission(database, phase, account, "blue", content, [], f"{number}", 10**6, now)
    assert account.team_id is not None
    return account.team_id


def rows(database: Database) -> list[tuple[str, str]]:
    with database.reading() as session:
        found = session.execute(select(ScoringRow.kind, ScoringRow.state).order_by(ScoringRow.id))
        return [(kind, state) for kind, state in found]


def attempts(database: Database, team_id: int) -> int:
    with database.reading() as session:
        return len(counted_times(session, team_id, "small", "blue"))


def claimed(database: Database) -> Job:
    job = claim(database, "test")
    assert job is not None
    return job


def test_what_is_withdrawn_before_it_is_scored_gives_its_attempt_back(database: Database) -> None:
    team, rules = submit(database, 2, held_out=True), read_rules()
    withdraw(database, rules, 1)
    withdraw(database, rules, 2)
    assert {state for _, state in rows(database)} == {"cancelled"}
    assert attempts(database, team) == 0
    assert claim(database, "test") is None


def test_a_team_ends_no_scoring_that_has_begun(database: Database) -> None:
    """Otherwise it could keep the process that scores from all other teams, at no cost."""
    team = submit(database, 1, held_out=True)
    job = claimed(database)
    withdraw(database, read_rules(), 1)
    assert rows(database) == [("public", "running"), ("held_out", "cancelled")]
    assert finish(database, job, stub_score(job))
    assert attempts(database, team) == 1


def test_what_is_withdrawn_after_it_was_scored_stays_an_attempt(database: Database) -> None:
    team = submit(database, 1, held_out=True)
    job = claimed(database)
    assert finish(database, job, stub_score(job))
    withdraw(database, read_rules(), 1)
    assert rows(database) == [("public", "scored"), ("held_out", "cancelled")]
    assert attempts(database, team) == 1


def test_scores_are_not_probed_by_withdrawing_while_it_is_scored_again(database: Database) -> None:
    team = submit(database, 1)
    job = claimed(database)
    assert finish(database, job, stub_score(job))
    score_again(database, [1], [make_phase()])
    withdraw(database, read_rules(), 1)
    assert rows(database) == [("public", "scored"), ("public", "cancelled")]
    assert attempts(database, team) == 1
    with pytest.raises(UserError, match="its team withdrew it"):
        score_again(database, [1], [make_phase()])


def test_what_changed_rules_refused_and_then_failed_spends_nothing(database: Database) -> None:
    team = submit(database, 1)
    assert finish(database, claimed(database), Outcome("refused", problems=[]))
    assert attempts(database, team) == 0
    score_again(database, [1], [make_phase()])
    assert finish(database, claimed(database), failed("a test", "a test"))
    assert attempts(database, team) == 0


@pytest.mark.parametrize(
    ("changes", "decide", "reason"),
    [
        ({}, choose, "does not let teams choose"),
        ({**CHOSEN, "deadline": "2020-01-01T00:00Z"}, choose, "the deadline has passed"),
        ({"deadline": "2020-01-01T00:00Z"}, withdraw, "the deadline has passed"),
    ],
)
def test_teams_decide_until_the_deadline_and_within_the_rules(
    database: Database, changes: dict[str, Any], decide: Callable[[Database, Challenge, int], None], reason: str
) -> None:
    submit(database, 1)
    with pytest.raises(UserError, match=reason):
        decide(database, read_rules(**changes), 1)
    assert rows(database) == [("public", "queue")]


def test_organisers_cancel_what_waits_and_have_it_scored_after_all(database: Database) -> None:
    team = submit(database, 1)
    job = claimed(database)
    assert cancel(database, 1, "the disk was full") == "Submission 1 of Owls (Blue Team)"
    assert not finish(database, job, stub_score(job))
    assert attempts(database, team) == 0
    with pytest.raises(UserError, match="is neither waiting nor running"):
        cancel(database, 1, "again")
    score_again(database, [1], [make_phase()])
    job = claimed(database)
    assert finish(database, job, stub_score(job))
    assert attempts(database, team) == 1


@pytest.mark.parametrize("number", [0, -1, 2, 2**40])
def test_a_submission_that_does_not_exist_is_named(database: Database, number: int) -> None:
    submit(database, 1)
    missing = f"there is no submission {number}"
    with pytest.raises(UserError, match=missing):
        disqualify(database, number, "why")
    with pytest.raises(UserError, match=missing):
        reinstate(database, number)
    with pytest.raises(UserError, match="one line of visible characters"):
        disqualify(database, 1, "two\nlines")


def board(site: Site) -> list[tuple[int, str, int]]:
    return [(each["rank"], each["participant"], each["submission"]) for each in site.read("/api/leaderboard?team=blue")]


def test_the_leaderboard_says_who_was_disqualified_and_why(open_site: OpenSite) -> None:
    site = open_site()
    larks = add_team(site.database, "Larks")
    site.submit(blue("owl", "lark"))
    site.submit(blue("owl", "lark", "wren"), token=larks)
    site.work()
    assert board(site) == [(1, "Owls", 1), (2, "Larks", 2)]

    def command(name: str, **args: Any) -> str:
        return COMMANDS[name].run(Desk(site.settings, site.database), Namespace(**args))  # type: ignore[no-untyped-call]

    sentence = command("disqualify", number=1, reason="It was bought <b>.")
    assert sentence.startswith("Submission 1 of Owls (Blue Team) is disqualified. The leaderboard shows the reason.")
    assert board(site) == [(1, "Larks", 2)]
    for path in ("/leaderboard", "/log"):
        assert "It was bought &lt;b&gt;." in site.client.get(path).text
    assert "Disqualified: submission 1 of Owls:" in site.client.get("/leaderboard").text
    record = site.read("/api/submissions/1")
    assert (record["state"], record["disqualified"]) == ("scored", "It was bought <b>.")
    assert "It was bought" in str(record["log"])
    command("reinstate", number=1)
    assert board(site) == [(1, "Owls", 1), (2, "Larks", 2)]
    assert "Disqualified" not in site.client.get("/leaderboard").text
    with pytest.raises(UserError, match="is not disqualified"):
        command("reinstate", number=1)


def test_the_chosen_one_stands_and_the_best_until_then(open_site: OpenSite) -> None:
    site = open_site(CHOSEN)
    for models in (("owl", "lark"), ("owl", "lark", "wren"), ("owl", "lark", "rook")):
        site.submit(blue(*models))
    site.work()
    assert board(site) == [(1, "Owls", 1)]
    for number in (2, 3):
        answer = site.client.post(f"/api/submissions/{number}/choose", headers=site.headers())
        assert (answer.status_code, answer.json()["chosen"]) == (200, True)
        assert board(site) == [(1, "Owls", number)]
    assert [each["chosen"] for each in site.read("/api/submissions")] == [True, False, False]
    assert site.client.post("/api/submissions/3/withdraw", headers=site.headers()).json()["withdrawn"]
    assert board(site) == [(1, "Owls", 1)]
    answer = site.client.post("/api/submissions/3/choose", headers=site.headers())
    assert (answer.status_code, "was withdrawn" in answer.json()["error"]) == (409, True)


@pytest.mark.parametrize("decision", ["withdraw", "choose"])
def test_only_its_team_decides(open_site: OpenSite, decision: str) -> None:
    site = open_site(CHOSEN)
    site.submit(blue("owl", "lark"))
    other = add_team(site.database, "Larks")
    for number in (1, 99):
        answer = site.client.post(f"/api/submissions/{number}/{decision}", headers=site.headers(other))
        assert (answer.status_code, answer.json()["error"]) == (
            404,
            "There is no such submission, or it is another team's.",
        )
    assert site.client.post(f"/api/submissions/1/{decision}").status_code == 401
    assert site.client.post("/api/submissions/1/delete", headers=site.headers()).status_code == 404
    site.log_in()
    assert site.client.post(f"/submissions/1/{decision}", data={"proof": "0" * 64}).status_code == 403
    assert site.read("/api/submissions/1")["state"] == "queue"


def test_a_disqualified_one_is_hidden_from_others(open_site: OpenSite) -> None:
    site = open_site(show_submissions=True)
    site.submit(blue("owl", "lark"))
    site.work()

    def statuses() -> set[int]:
        paths = ("/submissions/1", "/submissions/1/heatmap.png", "/api/submissions/1")
        return {site.client.get(path).status_code for path in paths}

    disqualify(site.database, 1, "why")
    assert statuses() == {404}
    assert site.read("/api/submissions/1")["disqualified"] == "why"
    reinstate(site.database, 1)
    assert statuses() == {200}


def test_a_withdrawn_one_is_its_teams_alone(open_site: OpenSite) -> None:
    site = open_site(show_submissions=True)
    site.submit(blue("owl", "lark"))
    site.work()
    assert site.client.get("/submissions/1").status_code == 200
    for _ in range(2):
        assert site.client.post("/api/submissions/1/withdraw", headers=site.headers()).status_code == 200
    assert board(site) == []
    assert site.client.get("/submissions/1").status_code == 404
    assert site.read("/api/submissions/1")["withdrawn"]
    assert site.client.get("/log").text.count("withdrawn by its team") == 1


def test_a_team_downloads_what_it_submitted(site: Site) -> None:
    content = blue("owl", "lark") + b"\n \n"
    site.submit(content)
    site.submit(blue("owl", "crow"))
    answer = site.client.get("/api/submissions/1/document.json", headers=site.headers())
    assert (answer.status_code, answer.content) == (200, content)
    refused = site.client.get("/api/submissions/2/document.json", headers=site.headers())
    assert (refused.status_code, "refused on arrival" in refused.json()["error"]) == (404, True)
    other = site.headers(add_team(site.database, "Larks"))
    answers = [site.client.get(f"/submissions/{number}/document.json", headers=other) for number in (1, 2, 99)]
    assert [answer.status_code for answer in answers] == [404] * 3
    assert len({answer.text for answer in answers}) == 1
    site.log_in()
    assert site.client.get("/submissions/1/document.json").content == content


def test_the_same_document_spends_no_attempt_by_accident(open_site: OpenSite, tmp_path: Path) -> None:
    site = open_site({"teams": {"blue": {"submissions": 2}, "red": {}}})
    path, content = "/api/submissions?team=blue", blue("owl", "lark")
    assert site.client.post(path, content=content, headers=site.headers()).status_code == 201
    answer = site.client.post(path, content=content, headers=site.headers())
    assert answer.status_code == 409
    assert "the same document as submission 1, which has no score yet" in answer.json()["error"]
    site.work()

    def check(content: bytes, token: str | None) -> tuple[Any, str]:
        headers = {} if token is None else site.headers(token)
        answer = site.client.post("/api/validate?team=blue", content=content, headers=headers).json()
        return answer["same_as"], answer["remark"]

    number, remark = check(content, site.token)
    assert (number, f"{1 / len(content):.6f}" in remark) == (1, True)
    # Others learn nothing about it.
    for token in (None, add_team(site.database, "Larks")):
        assert check(content, token) == (None, "")
    assert check(content + b" ", site.token) == (None, "")
    assert site.client.post(f"{path}&again=true", content=content, headers=site.headers()).status_code == 201
    assert len(site.read("/api/submissions")) == 2


def test_a_failed_one_may_be_submitted_again_at_once(tmp_path: Path) -> None:
    later = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    with (site := Site(make_settings(tmp_path, {"deadline": later}))).client:
        site.token = add_team(site.database, "Owls")
        path, content = "/api/submissions?team=blue", blue("owl", "lark")
        for _ in range(3):
            assert site.client.post(path, content=content, headers=site.headers()).status_code == 201
            cancel(site.database, len(site.read("/api/submissions")), "a test")
