"""`headstart submit` and `headstart submissions` against a served portal, with its scoring by a stub."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headstart.__main__ import main
from headstart.portal import client
from headstart.portal.queue import Job, claim, failed, finish
from headstart.tests.material.portals import Site, blue, red, serve_portal
from headstart.tests.material.stub_scores import stub_score

DOCUMENT = blue("owl", "lark")
SCORED = f"scored, {1 / len(DOCUMENT):.6f}, debiased {0.5 / len(DOCUMENT):.6f}"
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
    """Replace pauses, and list them."""
    pauses: list[float] = []
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(client, "time", SimpleNamespace(sleep=pauses.append))
    return pauses


@pytest.fixture
def url(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serve a portal; its team's token is in the environment."""
    monkeypatch.setenv("HEADSTART_TOKEN", site.token)
    with serve_portal(site.settings) as address:
        yield address


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


def test_a_document_is_submitted_and_followed_to_its_score(
    url: str, site: Site, document: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs: list[Job] = []

    def work(_: float) -> None:
        """Score in two pauses of the client, which sees the scoring begin."""
        if job := claim(site.database):
            jobs.append(job)
        else:
            assert finish(
                site.database, jobs[-1], stub_score(jobs[-1]) if len(jobs) == 1 else failed("a test", "secret")
            )

    monkeypatch.setattr(client, "time", SimpleNamespace(sleep=work))
    code, lines, error = run(capsys, "submit", document, f"--url={url}/")
    begin = ["Submission 1: queue, place 1 in the queue", "Submission 1: running"]
    assert (code, lines, error) == (0, [*begin, f"Submission 1: {SCORED}"], "")
    # The same command again follows the same submission.
    assert run(capsys, "submit", document, f"--url={url}") == (0, [f"Submission 1: {SCORED}"], "")

    Path(document).write_bytes(DOCUMENT + b" ")
    code, lines, error = run(capsys, "submit", document, f"--url={url}")
    assert lines[-1].startswith("Submission 2: failed, It could not be scored, for a reason on our side: a test.")
    assert (code, error) == (1, f"error: file: submission 2 of {document} has no score; its state is failed")


def test_after_ctrl_c_the_same_command_follows(url: str, site: Site, document: str) -> None:
    def start() -> subprocess.Popen[str]:
        pipe, command = subprocess.PIPE, [sys.executable, "-c", WITHOUT_EXTRA, "submit", document, f"--url={url}"]
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)

    with start() as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "Submission 1: queue, place 1 in the queue\n"
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    hint, last = error.splitlines()
    assert hint.endswith(f"To see it later: `headstart submissions --url={url}`")
    assert last == "error: interrupted"
    with start() as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "Submission 1: queue, place 1 in the queue\n"
        site.work()
        out, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (0, "")
    assert SCORED in out


def test_files_that_are_no_submission(url: str, document: str, capsys: pytest.CaptureFixture[str]) -> None:
    keys = "team: {} has not one of the keys models, differentiating_images; give --team=blue or red"
    for content, message in {
        b"{}": keys,
        b"[]": keys,
        b"{": "{}: 1 problem: is not JSON: ",
        b" " * 1_000_001: "{}: 1 problem: is larger than the limit of 1,000,000 bytes",
    }.items():
        Path(document).write_bytes(content)
        code, lines, error = run(capsys, "submit", document, f"--url={url}")
        assert (code, lines, error.startswith(f"error: {message.format(document)}")) == (1, [], True), error


def test_what_cannot_be_asked_is_one_line(
    url: str, site: Site, document: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def error(address: str, *options: str) -> str:
        code, lines, message = run(capsys, "submit", document, f"--url={address}", *options)
        assert (code, lines) == (1, [])
        return message.removeprefix("error: ")

    with socket.create_server(("127.0.0.1", 0)) as free:
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
    assert error(nobody) == f"url: {nobody} cannot be reached (Connection refused); run the command again"
    for address in ("challenge.example.org", "ftp://example.org", "http:///submissions"):
        assert error(address) == f"url: {address!r} is not an address; begin it with https:// or http://"
    for address in ("http://[::1", "http://127.0.0.1:none", "http://a b", url.replace("http", "https")):
        assert error(address).startswith(f"url: {address} cannot be reached (")
    assert error(f"{url}/blue").startswith(f"url: {url}/blue is not a portal (status 404)")
    assert error(url, "--token=wrong") == "token: The header Authorization has no valid token."
    site.admin("close")
    assert "have closed submissions" in site.client.get("/blue").text
    assert not site.client.get("/api/challenge").json()["open"]
    capsys.readouterr()
    assert error(url) == f"url: {url} answers: submission: the organisers have closed submissions"
    for token in ("", "é", "a\nb"):
        monkeypatch.setenv("HEADSTART_TOKEN", token)
        assert error(url).startswith("token: is missing or not a portal's; set HEADSTART_TOKEN")


def test_other_servers_get_no_token_and_a_busy_portal_is_waited_for(
    document: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], pauses: list[float]
) -> None:
    monkeypatch.setenv("HEADSTART_TOKEN", "token")
    challenge, paths = json.dumps({"max_submission_bytes": 1000}).encode(), list[str]()
    answers: list[tuple[int, dict[str, str], bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, headers, body = answers.pop(0)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - as the base class

        def log_message(self, *_: Any) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        for body in (b"<html>Welcome", b"{}", b"[]", b'{"max_submission_bytes": "all"}', b"[" * 100_000):
            answers.append((200, {}, body))
            assert f"url: {url} is not a portal (status 200)" in run(capsys, "submit", document, f"--url={url}")[2]
        answers.append((301, {"Location": "https://example.org/"}, b""))
        assert "redirects to https://example.org/; give that" in run(capsys, "submit", document, f"--url={url}")[2]
        answers.extend([(200, {}, challenge), (429, {"Retry-After": "7"}, b'{"error": "Wait."}')])
        answers.append((503, {}, b'{"error": "Away."}'))
        code, lines, error = run(capsys, "submit", document, f"--url={url}")
        server.shutdown()
    assert (code, lines, error) == (1, [f"Retrying {url} in 7 s: Wait."], f"error: url: {url} answers: Away.")
    assert pauses == [7]
    assert paths[-1] == "/api/submissions?team=blue"


def test_all_submissions_are_listed_also_on_pages(url: str, site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"Submissions to {url}: 0" in run(capsys, "submissions", f"--url={url}")[1]
    site.submit(DOCUMENT)
    site.work()
    for number in range(100):
        site.submit(blue("owl", "crow") + b" " * number)
    site.submit(red(0, 1), "red")
    code, lines, _ = run(capsys, "submissions", f"--url={url}", f"--token={site.token}")
    assert code == 0
    assert f"Submissions to {url}: 102" in lines
    rows = [line.split() for line in lines if re.match(r"\s*\d+ ", line)]
    assert [int(row[0]) for row in rows] == list(range(102, 0, -1))
    assert (rows[0][1], rows[0][4:]) == ("red", ["queue", "1", "–", "–"])
    assert rows[1][4:] == ["refused", "–", "–"]
    assert rows[-1][4:] == ["scored", f"{1 / len(DOCUMENT):.6f}", f"{0.5 / len(DOCUMENT):.6f}"]
    # Why one has no score stands below the table.
    assert any(line.startswith('101: /models/1 "crow": ') for line in lines)

    site.log_in()
    text = site.client.get("/submissions").text
    assert text.count('href="/submissions/') == 100
    (earlier,) = re.findall(r'href="(/submissions\?before=\d+)"', text)
    assert site.client.get(earlier).text.count('href="/submissions/') == 2
