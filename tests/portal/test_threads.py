"""Complaints about other portals, one scenario each: the docstring says what the thread is about and what is done here.

Threads of codalab/codabench, Cloud-CV/EvalAI and brain-score/vision.
"""

from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import Any

import pytest
from sqlalchemy import update

from headstart.portal.records.decisions import cancel
from headstart.portal.records.tables import ScoringRow
from headstart.portal.work.queue import Job, OtherDocumentsError, Outcome, claim, failed, finish
from headstart.portal.work.worker import Worker
from headstart.tests.material.portals import Site, blue
from headstart.tests.material.stub_scores import stub_score
from headstart.tests.portal.conftest import OpenSite

LATER = (datetime.now(UTC) + timedelta(days=1)).isoformat()
ONE_EACH: dict[str, Any] = {"deadline": LATER, "teams": {"blue": {"submissions": 1}}}
NOBODY_AT_WORK = "No worker has been active"


def take(site: Site) -> Job:
    job = claim(site.database, "test")
    assert job is not None
    return job


def change(site: Site, **values: Any) -> None:
    with site.database.writing() as session:
        session.execute(update(ScoringRow).values(**values))


def wait_for_long(site: Site) -> None:
    change(site, not_before=datetime.now(UTC) - timedelta(hours=1))


def states(site: Site) -> list[str]:
    return [each["state"] for each in reversed(site.read("/api/submissions"))]


def decide(site: Site, number: int, decision: str) -> None:
    assert site.client.post(f"/api/submissions/{number}/{decision}", headers=site.headers()).status_code == 200


def board(site: Site) -> list[int]:
    return [each["submission"] for each in site.read("/api/leaderboard?team=blue")]


def log_of(site: Site, number: int) -> list[str]:
    return [line["text"] for line in site.read(f"/api/submissions/{number}")["log"]]


def test_codabench_1184(open_site: OpenSite) -> None:
    """Submissions stay in scoring for hours, and an organiser removes them daily lest teams lose one of three attempts.

    Here the lease of a process that was lost runs out: another attempt scores, and nobody has to do anything.
    """
    site = open_site(ONE_EACH)
    site.submit(blue("owl", "lark"))
    take(site)
    change(site, lease_until=datetime.now(UTC) - timedelta(seconds=1))
    site.work()
    assert states(site) == ["scored"]
    assert log_of(site, 1)[:3] == ["received.", "attempt 1 began.", "attempt 2 began."]


def test_codabench_1507(open_site: OpenSite) -> None:
    """A submission that never started was cancelled by its team, and counted against its quota.

    Here what is withdrawn before its scoring begins counts against none.
    """
    site = open_site(ONE_EACH)
    site.submit(blue("owl", "lark"))
    assert site.submit(blue("owl", "wren")).status_code == 422
    decide(site, 1, "withdraw")
    assert site.submit(blue("owl", "wren")).status_code == 201
    site.work()
    assert states(site) == ["cancelled", "refused", "scored"]


def test_codabench_2018(site: Site) -> None:
    """A failed submission ranked first without a score; since it was deleted, its team is on no leaderboard at all.

    Here only scores are ranked, and a team's others stand whatever becomes of one.
    """
    site.submit(blue("owl", "lark"))
    assert finish(site.database, take(site), failed("a test", "a test"))
    assert board(site) == []
    decide(site, 1, "withdraw")
    site.submit(blue("owl", "wren"))
    site.work()
    assert board(site) == [2]
    decide(site, 2, "withdraw")
    assert board(site) == []
    site.submit(blue("owl", "rook"))
    site.work()
    assert board(site) == [3]


def test_codabench_2037(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """One submission hung in scoring; it was deleted, and those after it are still not scored.

    Here the process ends with a scoring that is cancelled, and the next one begins.
    """
    monkeypatch.setattr("headstart.portal.work.worker.LEASE", timedelta(seconds=0.6))
    for name in ("lark", "wren"):
        site.submit(blue("owl", name))
    hangs, ended = Event(), Event()

    def hang(job: Job) -> Outcome:
        hangs.set()
        assert ended.wait(20)
        return stub_score(job)

    worker = Worker(site.database, hang, "first", 3600, end=ended.set)
    thread = Thread(target=worker.run)
    thread.start()
    assert hangs.wait(20)
    worker.stopping.set()
    cancel(site.database, 1, "it hangs")
    assert ended.wait(20)
    thread.join(20)
    assert [job.submission_id for job in site.work()] == [2]
    assert states(site) == ["cancelled", "scored"]


def test_codabench_2143(site: Site) -> None:
    """All submissions of the last hour stay at their first step, and the organiser has to ask what is wrong.

    Here the overview and the pages say that no process scores; what waits is scored in its order as soon as one does.
    """
    for name in ("lark", "wren", "rook"):
        site.submit(blue("owl", name))
    wait_for_long(site)
    assert NOBODY_AT_WORK in site.client.get("/").text
    assert [job.submission_id for job in site.work()] == [1, 2, 3]
    assert NOBODY_AT_WORK not in site.client.get("/").text


def test_codabench_2341(site: Site) -> None:
    """A score took a quarter of an hour, because the queue was long, and its team took that for a fault.

    Here a page has the position, and the time that is expected from how long the others took.
    """
    for number in range(5):
        site.submit(blue("owl", "lark") + b" " * number)
    assert finish(site.database, take(site), Outcome("scored"))
    change(site, started=datetime.now(UTC) - timedelta(minutes=15))
    change(site, ended=datetime.now(UTC) - timedelta(minutes=11, seconds=15))
    site.log_in()
    page = site.client.get("/submissions/5").text
    assert "place 4 in the queue" in page
    assert "Its score is expected in about 15 minutes." in page


def test_evalai_3955(site: Site) -> None:
    """A submission waits for days, since the hosts had to update something of theirs, which nobody told them.

    Here a process with other documents than the server's claims nothing and says why, and pages say that none scores.
    """
    site.submit(blue("owl", "lark"))
    with pytest.raises(OtherDocumentsError, match="restart both with the same"):
        claim(site.database, "test", {"small/blue/public": "the documents of last week"})
    wait_for_long(site)
    assert site.read("/api/submissions/1")["stalled"]
    site.work()
    assert states(site) == ["scored"]


def test_evalai_4605(site: Site) -> None:
    """Hours after the first test submission of a host, nothing tells whether a worker runs, how long it takes, or
    whether the file is valid at all.

    Here a document is checked before it is submitted, and a waiting one has the expected time and tells of the worker.
    """
    checked = site.client.post("/api/validate?team=blue", content=b"an arbitrary file").json()
    assert not checked["valid"]
    assert site.submit(b"an arbitrary file").status_code == 422
    site.submit(blue("owl", "lark"))
    record = site.read("/api/submissions/2")
    assert (record["state"], record["place_in_queue"], record["stalled"]) == ("queue", 1, False)
    wait_for_long(site)
    assert site.read("/api/submissions/2")["stalled"]


def test_evalai_4941(site: Site) -> None:
    """A submission waits for much longer than earlier ones, and its team asks whether the queue works, whether others
    are scored, and whether to submit it again.

    Here the page says that nothing is lost, and a second one of the same document is not taken by accident.
    """
    site.submit(blue("owl", "lark"))
    wait_for_long(site)
    site.log_in()
    page = site.client.get("/submissions/1").text
    assert NOBODY_AT_WORK in page
    assert "do not submit them again" in page
    path = "/api/submissions?team=blue"
    answer = site.client.post(path, content=blue("owl", "lark"), headers=site.headers())
    assert (answer.status_code, "same document as submission 1" in answer.json()["error"]) == (409, True)
    assert len(site.read("/api/submissions")) == 1


def test_brain_score_522(site: Site) -> None:
    """A month after three submissions nothing is seen of them: they had failed, as a log of the maintainers tells.

    Here the page has the class of the reason at once, and the attempts are given back.
    """
    site.submit(blue("owl", "lark"))
    assert finish(site.database, take(site), failed("a model could not be loaded or run", "no owl.pth"))
    site.log_in()
    page = site.client.get("/submissions/1").text
    assert "a model could not be loaded or run" in page
    assert "owl.pth" not in page
    assert "Your submissions: 0" in site.client.get("/blue").text


def test_brain_score_551(site: Site) -> None:
    """Two submissions were taken, and whether their scoring was never started or failed is not to be told.

    Here the log of each submission tells it apart.
    """
    for name in ("lark", "wren"):
        site.submit(blue("owl", name))
    take(site)
    cancel(site.database, 1, "the machine was needed")
    assert log_of(site, 1) == [
        "received.",
        "attempt 1 began.",
        "its scoring was cancelled: the machine was needed",
    ]
    assert log_of(site, 2) == ["received."]


def test_brain_score_1728(open_site: OpenSite) -> None:
    """Boxes that choose what is public have no button, are empty again when the page is read anew, and the leaderboard
    follows a day later.

    Here a button chooses, the page and the list say so from then on, and the leaderboard follows at once.
    """
    site = open_site({"teams": {"blue": {"standing": "chosen"}}})
    for name in ("lark", "wren"):
        site.submit(blue("owl", name))
    site.submit(blue("owl", "lark", "wren"))
    site.work()
    site.log_in()
    for number in (3, 2):
        page = site.client.get(f"/submissions/{number}").text
        assert "Choose it for the leaderboard" in page
        proof = page.partition('name="proof" value="')[2].partition('"')[0]
        assert site.client.post(f"/submissions/{number}/choose", data={"proof": proof}).status_code == 303
        assert "Its team chose it" in site.client.get(f"/submissions/{number}").text
        assert "Choose it for the leaderboard" not in site.client.get(f"/submissions/{number}").text
        assert board(site) == [number]
        assert f'id="blue-{number}"' in site.client.get("/leaderboard").text
    assert site.client.get("/submissions").text.count(">chosen<") == 1
