"""`headstart submit` and `headstart submissions` against a served portal, with its scoring by a stub."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from headstart.__main__ import main
from headstart.portal import client
from headstart.portal.records.accounts import find_team, revoke_team
from headstart.portal.work.queue import Job, Outcome, claim, finish
from headstart.tests.material.portal_fronts import Front, serve_front
from headstart.tests.material.portals import Site, blue, red
from headstart.tests.material.served_portals import serve_portal
from headstart.tests.material.stub_scores import stub_score

OpenSite = Callable[..., Site]
Scorer = Callable[[Job], Outcome]
SUBMITTED = "POST /api/submissions"
DOCUMENT = blue("owl", "lark")
SCORE = f"{1 / len(DOCUMENT):.6f}"
# Runs a command as an environment without the portal's extra would, and says what it has imported.
WITHOUT_EXTRA = """
import sys
sys.modules.update(dict.fromkeys(("fastapi", "sqlalchemy", "uvicorn", "starlette", "httpx")))
from headstart.__main__ import main
main()
assert not {"torch", "lightning", "numpy", "rich"} & set(sys.modules)
"""


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Shorten pauses, and list those for which a portal asked."""
    asked: list[float] = []

    def sleep(seconds: float) -> None:
        asked.extend([seconds] if seconds > 1 else [])
        threading.Event().wait(0.05)

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(client, "time", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(client, "POLL_SECONDS", (0.05, 0.05))
    return asked


@pytest.fixture
def front(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Front]:
    """Serve a portal behind a proxy; its team's token is in the environment."""
    monkeypatch.setenv("HEADSTART_TOKEN", site.token)
    with serve_portal(site.settings) as address, serve_front(address) as front:
        yield front


@pytest.fixture
def worker(site: Site) -> Iterator[list[Scorer]]:
    """Score what is submitted, by the last function of the list."""
    scorers: list[Scorer] = [stub_score]
    stopping = threading.Event()

    def work() -> None:
        while not stopping.wait(0.05):
            if (job := claim(site.database, "test")) is not None:
                # Long enough for the client to see it running.
                stopping.wait(0.3)
                assert finish(site.database, job, scorers[-1](job))

    thread = threading.Thread(target=work)
    thread.start()
    yield scorers
    stopping.set()
    thread.join()


@pytest.fixture
def document(tmp_path: Path) -> str:
    path = tmp_path / "entry.json"
    path.write_bytes(DOCUMENT)
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, list[str], str]:
    """Return the exit code of a command, the lines that it printed, and its error."""
    code = 0
    try:
        main(args)
    except SystemExit as ended:
        code = int(ended.code or 0)
    out, error = capsys.readouterr()
    assert error.count("\n") <= 1
    return code, out.splitlines(), error.strip()


@pytest.mark.usefixtures("worker")
def test_a_document_is_submitted_and_followed_to_its_score(
    front: Front, document: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines, error = run(capsys, "submit", document, f"--url={front.url}/")
    assert (code, error) == (0, "")
    # The worker may be faster than the first answer.
    assert set(lines[:-1]) <= {"Submission 1: queue, place 1 in the queue", "Submission 1: running"}
    assert lines[-1] == f"Submission 1: scored, {SCORE}, debiased {0.5 / len(DOCUMENT):.6f}"
    assert len(lines) == 3
    # It is validated before it is submitted.
    assert [name for name, _, _ in front.requests if name.startswith("POST")] == ["POST /api/validate", SUBMITTED]


def test_nothing_is_waited_for_where_that_is_asked_for(
    site: Site, front: Front, document: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "red.json").write_bytes(red(0, 1, 2))
    for number, name in enumerate((document, str(tmp_path / "red.json")), start=1):
        ended = run(capsys, "submit", name, f"--url={front.url}", "--wait=false")
        assert ended == (0, [f"Submission {number}: queue, place {number} in the queue"], "")
    # The team of the contract is that of the document's key.
    assert [each["team"] for each in site.read("/api/submissions")] == ["red", "blue"]


def test_the_same_command_submits_a_waiting_document_once_and_a_scored_one_when_told(
    site: Site, front: Front, document: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("submit", document, f"--url={front.url}", "--wait=false")
    for options in ((), (), ("--again=true",)):
        assert run(capsys, *command, *options)[1][-1] == "Submission 1: queue, place 1 in the queue"
    site.work()
    code, lines, _ = run(capsys, *command)
    assert code == 0
    assert re.fullmatch(r".*entry.json is submission 1, of \S+; --again=true submits it once more", lines[0])
    assert lines[1].startswith(f"Submission 1: scored, {SCORE}")
    assert run(capsys, *command, "--again=true")[1][0].startswith("Submission 2: queue, place 1 in the queue")
    assert run(capsys, *command, "--again=true")[1][-1].startswith("Submission 2: queue, place 1 in the queue")
    assert len(site.read("/api/submissions")) == 2


def test_an_answer_that_is_lost_submits_once(
    site: Site, front: Front, document: str, capsys: pytest.CaptureFixture[str], pauses: list[float]
) -> None:
    front.lose(SUBMITTED)
    code, lines, _ = run(capsys, "submit", document, f"--url={front.url}", "--wait=false")
    assert code == 0
    assert lines[0].startswith(f"Retrying {front.url} in 30 s: It cannot be reached (")
    assert lines[1:] == ["Submission 1: queue, place 1 in the queue"]
    assert pauses == [30]
    # A command that was killed while its request was under way is not in the list yet, and makes the same key.
    front.answer("GET /api/submissions", 200, b"[]")
    assert run(capsys, "submit", document, f"--url={front.url}", "--wait=false")[0] == 0
    assert len(front.sent(SUBMITTED)) == 3
    assert len(set(front.sent(SUBMITTED))) == 1
    assert len(site.read("/api/submissions")) == 1


def start(*args: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", WITHOUT_EXTRA, *args], stdout=pipe, stderr=pipe, text=True)


def test_after_ctrl_c_the_same_command_follows(site: Site, front: Front, document: str) -> None:
    command = ("submit", document, f"--url={front.url}")
    with start(*command) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "Submission 1: queue, place 1 in the queue\n"
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    hint, last = error.splitlines()
    assert hint.endswith(f"To see it later: `headstart submissions --url={front.url}`")
    assert last == "error: interrupted"
    with start(*command) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(f"{document} is submission 1, of 20")
        site.work()
        out, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (0, "")
    assert f"Submission 1: scored, {SCORE}" in out
    assert front.sent(SUBMITTED) == [front.sent(SUBMITTED)[0]]


def test_a_refused_document_is_not_submitted_and_every_problem_is_printed(
    site: Site, front: Front, document: str, capsys: pytest.CaptureFixture[str]
) -> None:
    content = blue("owl", "Owl", "crow\x1b")
    Path(document).write_bytes(content)
    code, lines, error = run(capsys, "submit", document, f"--url={front.url}")
    assert code == 1
    assert error == f"error: file: {document} breaks rules, problems: 3; it was not submitted"
    problems = site.client.post("/api/validate?team=blue", content=content).json()["problems"]
    assert lines == [f"{each['pointer']} {each['value']}: {each['rule']}" for each in problems]
    assert '/models/1 "Owl": the same model as /models/0; models must be unique' in lines
    assert site.read("/api/submissions") == []


def test_what_is_refused_on_arrival_or_later_is_said(
    open_site: OpenSite, document: str, capsys: pytest.CaptureFixture[str]
) -> None:
    deadline = datetime.now(UTC) - timedelta(days=1)
    site = open_site({"deadline": deadline.isoformat()})
    with serve_portal(site.settings) as address:
        for number in (1, 2):
            # A document without a score is submitted again when the command is.
            code, lines, error = run(capsys, "submit", document, f"--url={address}", f"--token={site.token}")
            assert code == 1
            assert lines[0] == f"Submission {number}: refused"
            assert lines[1].startswith("the deadline was ")
            assert error == f"error: file: submission {number} of {document} has no score; its state is refused"


def test_a_scoring_that_fails_says_why(
    front: Front, worker: list[Scorer], document: str, capsys: pytest.CaptureFixture[str]
) -> None:
    worker.append(lambda job: Outcome("failed", "A model could not be loaded.", "secret"))
    code, lines, error = run(capsys, "submit", document, f"--url={front.url}")
    assert code == 1
    assert lines[-1] == "Submission 1: failed, A model could not be loaded."
    assert error == f"error: file: submission 1 of {document} has no score; its state is failed"
    worker.append(stub_score)
    code, lines, _ = run(capsys, "submit", document, f"--url={front.url}")
    assert code == 0
    assert lines[-1].startswith("Submission 2: scored")


def test_states_and_times_that_are_new_are_printed_as_they_are(
    site: Site, front: Front, document: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert site.submit(DOCUMENT).status_code == 201
    queued = {**site.read("/api/submissions/1"), "expected_seconds": 239.7}
    front.answer("GET /api/submissions/1", 200, json.dumps({**queued, "place_in_queue": 4}).encode())
    withdrawn = {**queued, "state": "withdrawn", "place_in_queue": None, "expected_seconds": None}
    front.answer("GET /api/submissions/1", 200, json.dumps(withdrawn).encode())
    code, lines, error = run(capsys, "submit", document, f"--url={front.url}")
    assert code == 1
    states = ["queue, place 1 in the queue", "queue, place 4 in the queue, about 240 s", "withdrawn"]
    assert lines[1:] == [f"Submission 1: {state}" for state in states]
    assert error.endswith("has no score; its state is withdrawn")


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_portal_is_waited_for(
    status: int, front: Front, document: str, capsys: pytest.CaptureFixture[str], pauses: list[float]
) -> None:
    front.answer("POST /api/validate", status, b'{"error": "Wait a little."}', Retry_After="7")
    for later in ("Fri, 31 Dec 1999 23:59:59 GMT", "9" * 5000):
        front.answer(SUBMITTED, status, b"<html>", Retry_After=later)
    code, lines, _ = run(capsys, "submit", document, f"--url={front.url}", "--wait=false")
    assert code == 0
    assert pauses == [7, 30, 30]
    assert lines[0] == f"Retrying {front.url} in 7 s: Wait a little."
    assert lines[1] == f"Retrying {front.url} in 30 s: status {status}"


def test_what_cannot_be_asked_is_one_line(
    site: Site, front: Front, document: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def error(url: str, *options: str) -> str:
        code, lines, message = run(capsys, "submit", document, f"--url={url}", *options)
        assert (code, lines) == (1, [])
        return message.removeprefix("error: ")

    with socket.create_server(("127.0.0.1", 0)) as free:
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
    assert error(nobody) == f"url: {nobody} cannot be reached (Connection refused)"
    secure = front.url.replace("http", "https")
    assert re.fullmatch(rf"url: {secure} cannot be reached \(.*SSL.*\)", error(secure))
    for url in ("challenge.example.org", "ftp://example.org", "http:///submissions"):
        assert error(url) == f"url: {url!r} is not an address; begin it with https:// or http://"
    for url in ("http://[::1", "http://127.0.0.1:none", "http://a b", "http://é..org"):
        assert error(url).startswith(f"url: {url} cannot be reached (")
    assert error(f"{front.url}/blue") == (
        f"url: {front.url}/blue is not a portal (status 404); give the address of its first page"
    )
    challenge = "GET /api/challenge"
    for answer in (b"<html>Welcome", b"{}", b"[]", b"3", b'{"max_submission_bytes": "all"}', b"[" * 100_000):
        front.answer(challenge, 200, answer)
        assert error(front.url).startswith(f"url: {front.url} is not a portal (status 200)")
    front.answer(challenge, 301, Location="https://example.org/api/challenge")
    assert error(front.url) == (f"url: {front.url} redirects to https://example.org/api/challenge; give that address")
    assert error(front.url, "--token=wrong") == "token: The token is not valid."
    monkeypatch.setenv("HEADSTART_TOKEN", f"{site.token}\n")
    with site.database.writing() as session:
        revoke_team(session, datetime.now(UTC), find_team(session, "Owls"))
    assert error(front.url) == "token: The token is not valid."
    for token in ("", "é", "a\nb"):
        monkeypatch.setenv("HEADSTART_TOKEN", token)
        assert error(front.url).startswith("token: is missing or not a portal's; set HEADSTART_TOKEN")
    assert all(name.startswith("GET") for name, _, _ in front.requests)


@pytest.mark.parametrize("status", [403, 429])
def test_what_the_portal_does_not_take_is_one_line(
    status: int, front: Front, document: str, capsys: pytest.CaptureFixture[str]
) -> None:
    front.answer(SUBMITTED, status, b'{"error": "The organisers paused submissions."}')
    code, _, error = run(capsys, "submit", document, f"--url={front.url}")
    assert (code, error) == (1, f"error: url: {front.url} answers: The organisers paused submissions.")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{}", "team: {} has not one of the keys models, differentiating_images; give --team=blue or red"),
        (b"[]", "team: {} has not one of the keys models, differentiating_images; give --team=blue or red"),
        (b"{", "{}: 1 problem: is not JSON: "),
        (b" " * 1_000_001, "{}: 1 problem: is larger than the limit of 1,000,000 bytes"),
        (None, "{}: 1 problem: there is no such file"),
    ],
)
def test_files_that_are_no_submission(
    content: bytes | None, message: str, front: Front, document: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(document).unlink()
    if content is not None:
        Path(document).write_bytes(content)
    code, lines, error = run(capsys, "submit", document, f"--url={front.url}")
    assert (code, lines) == (1, [])
    assert error.startswith(f"error: {message.format(document)}")
    if content == b"{}":
        # Of a document that says no team, the portal names all problems.
        code, lines, _ = run(capsys, "submit", document, f"--url={front.url}", "--team=red")
        assert (code, len(lines)) == (1, 1)


@pytest.mark.slow
def test_all_submissions_are_listed(site: Site, front: Front, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"Submissions to {front.url}: 0" in run(capsys, "submissions", f"--url={front.url}")[1]
    for number in range(104):
        site.submit(blue("owl", "lark") + b" " * number)
    site.work()
    site.submit(blue("owl", "crow"))
    site.submit(red(0, 1), "red")
    code, lines, _ = run(capsys, "submissions", f"--url={front.url}", f"--token={site.token}")
    assert code == 0
    assert f"Submissions to {front.url}: 106" in lines
    rows = [line.split() for line in lines if re.match(r"\s*\d+ ", line)]
    assert [int(row[0]) for row in rows] == list(range(106, 0, -1))
    assert rows[0][1] == "red"
    assert rows[0][4:] == ["queue", "1", "–", "–"]
    assert rows[1][4:] == ["refused", "–", "–"]
    assert rows[-1][4:] == ["scored", SCORE, f"{0.5 / len(DOCUMENT):.6f}"]
    # Why one has no score stands below the table.
    assert any(line.startswith('105: /models/1 "crow": ') for line in lines)
    assert os.environ["HEADSTART_TOKEN"] not in "".join(lines)
