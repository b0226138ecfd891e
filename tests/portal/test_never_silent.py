"""What a team reads while it waits: its position, the expected time, what happened, and the reason of every failure."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from headstart.portal.records import submissions, waiting
from headstart.portal.records.accounts import add_team
from headstart.portal.records.decisions import cancel, withdraw
from headstart.portal.records.log import announce, retract
from headstart.portal.records.tables import ScoringRow
from headstart.portal.work.intake import score_again
from headstart.portal.work.queue import MAX_ATTEMPTS, Job, Outcome, claim, failed, finish, put_back
from headstart.portal.work.scoring import Scorer
from headstart.portal.work.worker import Worker
from headstart.tests.material.arena import ENTRIES
from headstart.tests.material.portals import Site, blue, make_settings, read_rules, red
from headstart.tests.material.stub_scores import stub_score
from headstart.tests.portal.conftest import OpenSite
from headstart.tests.portal.test_scoring import Hosted

DAY = timedelta(days=1)


def change(site: Site, number: int, **values: Any) -> None:
    with site.database.writing() as session:
        session.execute(update(ScoringRow).where(ScoringRow.submission_id == number).values(**values))


def take(site: Site, worker: str = "test") -> Job:
    job = claim(site.database, worker)
    assert job is not None
    return job


def expected(site: Site, number: int) -> int | None:
    value: int | None = site.read(f"/api/submissions/{number}")["expected_seconds"]
    return value


def test_the_expected_time_follows_from_positions_durations_and_processes(site: Site) -> None:
    now = datetime.now(UTC)
    for number in range(7):
        site.submit(blue("owl", "lark") + b" " * number)
    # Nothing is known before anything has been scored.
    assert expected(site, 1) is None
    for number, seconds in ((1, 200), (2, 280)):
        job = take(site)
        assert finish(site.database, job, stub_score(job))
        change(site, number, started=now - DAY, ended=now - DAY + timedelta(seconds=seconds))
    # Two took 240 s in the mean, and one process has the next of five.
    assert [expected(site, number) for number in (3, 7)] == [240, 5 * 240]
    take(site, "first")
    change(site, 3, started=now - timedelta(seconds=100))
    assert expected(site, 3) == pytest.approx(140, abs=5)
    assert expected(site, 4) == 2 * 240
    take(site, "second")
    # Two processes: one runs on each, and three wait.
    assert [expected(site, number) for number in (5, 6, 7)] == [2 * 240, 2 * 240, 3 * 240]
    site.log_in()
    assert "Its score is expected in about 8 minutes." in site.client.get("/submissions/5").text
    # What takes longer than usual, and a team of the contract without scores, are not guessed.
    change(site, 3, started=now - timedelta(seconds=300))
    assert expected(site, 3) is None
    site.submit(red(0, 1, 2), "red")
    assert expected(site, 8) is None


def test_processes_that_ended_are_not_counted_on(site: Site) -> None:
    now = datetime.now(UTC)
    for number in range(5):
        site.submit(blue("owl", "lark") + b" " * number)
    for number, worker in ((1, "first"), (2, "second")):
        job = take(site, worker)
        assert finish(site.database, job, stub_score(job))
        change(site, number, started=now - timedelta(seconds=200), ended=now - timedelta(seconds=100))
    # The process was started again after each, and is at the third one.
    take(site, "third")
    assert [expected(site, number) for number in (4, 5)] == [2 * 100, 3 * 100]


def test_pages_say_that_no_process_is_at_work(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.log_in()
    site.submit(blue("owl", "lark"))

    def says(path: str) -> bool:
        return "No worker has been active" in site.client.get(path).text

    assert not says("/")
    old = datetime.now(UTC) - timedelta(minutes=11)
    change(site, 1, not_before=old)
    assert says("/")
    assert says("/submissions/1")
    assert site.read("/api/submissions/1")["stalled"]
    # A process that works on another submission, for an hour, is one.
    site.submit(blue("owl", "wren"))
    take(site)
    change(site, 1, started=old - DAY, lease_until=datetime.now(UTC))
    change(site, 2, not_before=old)
    assert not says("/submissions/2")
    # One that died with its submission is not, and nor is a team that withdraws.
    change(site, 1, lease_until=old)
    assert says("/submissions/1")
    site.submit(blue("owl", "rook"))
    withdraw(site.database, read_rules(), 3)
    assert says("/submissions/1")


def log_of(site: Site, number: int = 1) -> list[str]:
    return [line["text"] for line in site.read(f"/api/submissions/{number}")["log"]]


def test_a_team_reads_what_happened_and_others_do_not(open_site: OpenSite) -> None:
    site = open_site({"deadline": (datetime.now(UTC) + DAY).isoformat()}, held_out_catalog="held.jsonl")
    site.submit(blue("owl", "lark"))
    job = take(site)
    put_back(site.database, job, "It will try again soon.", "/secret/folder is full")
    change(site, 1, not_before=datetime.now(UTC) - DAY)
    site.work()
    score = f"{1 / len(blue('owl', 'lark')):.6f}"
    assert log_of(site) == [
        "received.",
        "attempt 1 began.",
        "It will try again soon.",
        "attempt 2 began.",
        f"scored, {score}.",
    ]
    site.log_in()
    page = site.client.get("/submissions/1").text
    assert "attempt 2 began." in page
    assert "/secret" not in page
    withdraw(site.database, read_rules(), 1)
    assert log_of(site)[-1] == "withdrawn by its team."
    other = site.headers(add_team(site.database, "Larks"))
    assert site.client.get("/api/submissions/1", headers=other).status_code == 404


def test_a_visitor_of_a_shown_submission_reads_nothing_of_its_way(open_site: OpenSite) -> None:
    site = open_site(show_submissions=True)
    site.submit(blue("owl", "lark"))
    site.work()
    assert site.client.get("/api/submissions/1").json()["log"] == []
    assert "What happened" not in site.client.get("/submissions/1").text


def test_a_process_that_ends_again_and_again_is_named(site: Site) -> None:
    site.submit(blue("owl", "lark"))
    change(site, 1, attempt=MAX_ATTEMPTS)
    assert claim(site.database, "test") is None
    record = site.read("/api/submissions/1")
    assert f"the worker ended {MAX_ATTEMPTS} times" in record["note"]
    assert log_of(site)[-1] == record["note"]


@pytest.mark.parametrize("ends", ["cancelled", "late"])
def test_a_scoring_that_hangs_frees_the_process(site: Site, monkeypatch: pytest.MonkeyPatch, ends: str) -> None:
    monkeypatch.setattr("headstart.portal.work.worker.LEASE", timedelta(seconds=0.6))
    site.submit(blue("owl", "lark"))
    begun, ended = Event(), Event()

    def hang(job: Job) -> Outcome:
        begun.set()
        assert ended.wait(20)
        return stub_score(job)

    worker = Worker(site.database, hang, "first", 3600 if ends == "cancelled" else 0.3, end=ended.set)
    thread = Thread(target=worker.run)
    thread.start()
    assert begun.wait(20)
    if ends == "cancelled":
        cancel(site.database, 1, "it hangs")
    assert ended.wait(20)
    worker.stopping.set()
    thread.join(20)
    record = site.read("/api/submissions/1")
    assert (record["state"], record["score"]) == ("cancelled" if ends == "cancelled" else "failed", None)
    assert ("it hangs" if ends == "cancelled" else "took longer than 0.005 minutes") in record["note"]


@pytest.fixture
def hosted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hosted:
    monkeypatch.setenv("HACKATHON_DATASET_ROOT", str(tmp_path / "datasets"))
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path / "cache"))
    return Hosted(tmp_path)


def lose_a_stimulus(hosted: Hosted) -> None:
    hosted.arena.photo(0).unlink()


def break_a_stimulus(hosted: Hosted) -> None:
    hosted.arena.photo(0).write_bytes(b"no picture")


def lose_weights(hosted: Hosted) -> None:
    entries = [{**each, "weights": "gone.safetensors"} for each in ENTRIES]
    hosted.arena.write(hosted.arena.registry.name, entries)


def fill_the_cache(hosted: Hosted) -> None:
    (hosted.arena.folder / "cache").write_text("no folder")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lose_a_stimulus, "a stimulus could not be read"),
        (break_a_stimulus, "a stimulus could not be read"),
        (lose_weights, "a model could not be loaded or run"),
        (fill_the_cache, "the scoring machine lacks a device or a folder"),
    ],
)
def test_reasons_of_failures_are_named_by_their_class_alone(hosted: Hosted, spoil: Any, reason: str) -> None:
    spoil(hosted)
    content = hosted.arena.blue("squeezenet1_1", "mobilenet_v2_narrow").read_bytes()
    outcome = Scorer(hosted.settings())(Job(1, 1, 1, "public", "small", "blue", content))
    assert (outcome.state, f": {reason}." in outcome.note) == ("failed", True), outcome.error
    names = ("squeezenet", "mobilenet", "nature", "0.png", str(hosted.arena.folder), "gone")
    assert [name for name in names if name in outcome.note] == []
    assert any(name in outcome.error for name in names)


@pytest.fixture
def private(tmp_path: Path) -> Iterator[Site]:
    """Open a portal that shows no submissions, with one scored and one waiting."""
    with (site := Site(make_settings(tmp_path, {}))).client:
        site.token = add_team(site.database, "Owls")
        site.submit(blue("owl", "lark"))
        site.work()
        site.submit(blue("owl", "wren"))
        yield site


@pytest.mark.parametrize("path", ["/log", "/api/log", "/log.atom"])
def test_a_log_without_submissions_has_ones_own(private: Site, path: str) -> None:
    score = f"{1 / len(blue('owl', 'lark')):.6f}"
    announce(private.database, "Come all.")
    answers = {
        name: private.client.get(path, headers=headers).text
        for name, headers in (
            ("nobody", {}),
            ("others", private.headers(add_team(private.database, "Larks"))),
            ("own", private.headers()),
        )
    }
    assert all("Come all." in text for text in answers.values())
    shown = {name for name, text in answers.items() if score in text or "received" in text}
    # A feed is read without a token.
    assert shown == (set() if path == "/log.atom" else {"own"})


def test_nothing_of_others_submissions_is_anywhere(private: Site) -> None:
    other = private.headers(add_team(private.database, "Larks"))
    paths = [f"/submissions/{n}{end}" for n in (1, 2) for end in ("", "/heatmap.png", "/document.json", "/withdraw")]
    paths += [f"/api/submissions/{number}{end}" for number in (1, 2) for end in ("", "/document.json")]
    for headers in ({}, other):
        assert {private.client.get(path, headers=headers).status_code for path in paths} == {404}
        for path in ("/", "/blue", "/submissions", "/api/submissions", "/metrics", "/api/challenge"):
            assert "Owls" not in private.client.get(path, headers=headers).text, path


def test_announcements_are_shown_first_and_taken_back(site: Site) -> None:
    numbers = [announce(site.database, f"News {number} <b>.") for number in range(5)]
    page = site.client.get("/").text
    assert [number for number in range(5) if f"News {number} &lt;b&gt;." in page] == [2, 3, 4]
    assert page.index("News 4") < page.index("News 3")
    assert "News 0 &lt;b&gt;." in site.client.get("/log.atom").text
    assert site.read("/api/log")[0]["event"] == "announcement"
    retract(site.database, numbers[-1])
    assert "News 4" not in site.client.get("/").text + site.client.get("/log").text
    for number in (numbers[-1] + 1, 1, -1, 2**40):
        with pytest.raises(ValueError, match="is not an announcement"):
            retract(site.database, number)
    with pytest.raises(ValueError, match="one line of visible characters"):
        announce(site.database, " \n ")


def test_lists_of_many_waiting_submissions_read_the_queue_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        site.submit(blue("owl", "lark") + b" " * number)
    calls, read = [], waiting.read_queue

    def count(session: Session, now: datetime) -> Any:
        calls.append(now)
        return read(session, now)

    monkeypatch.setattr(submissions, "read_queue", count)
    assert [each["place_in_queue"] for each in site.read("/api/submissions")] == [5, 4, 3, 2, 1]
    assert len(calls) == 1


def test_a_page_says_that_an_earlier_score_is_kept(site: Site) -> None:
    site.log_in()
    content = blue("owl", "lark")
    site.submit(content)

    def says() -> bool:
        return f"Its earlier score, {1 / len(content):.6f}, is kept" in site.client.get("/submissions/1").text

    assert not says()
    site.work()
    assert not says()
    score_again(site.database, [1], site.client.app.state.portal.phases)  # type: ignore[attr-defined]
    assert says()
    assert finish(site.database, take(site), failed("a test", "a test"))
    assert says()
    assert len(site.read("/api/leaderboard?team=blue")) == 1
