"""`headstart submit` and `headstart submissions` against a served portal, with its scoring by a stub."""

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


@pytest.fixture
def url(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serve a portal; its team's token is in the environment."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
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
            outcome = stub_score(jobs[-1]) if len(jobs) == 1 else failed("a test", "secret")
            assert finish(site.database, jobs[-1], outcome)

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
    for is_cut in (True, False):
        command = [sys.executable, "-c", WITHOUT_EXTRA, "submit", document, f"--url={url}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "Submission 1: queue, place 1 in the queue\n"
            if is_cut:
                process.send_signal(signal.SIGINT)
            else:
                site.work()
            out, error = process.communicate(timeout=60)
        if is_cut:
            hint = f"Its score: `headstart submissions --url={url}`\nerror: interrupted\n"
            assert (process.returncode, error.endswith(hint)) == (130, True)
    assert (process.returncode, SCORED in out, error) == (0, True, "")


def test_what_cannot_be_submitted_or_asked_is_one_line(
    url: str, site: Site, document: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def error(address: str, *options: str) -> str:
        code, lines, message = run(capsys, "submit", document, f"--url={address}", *options)
        assert (code, lines) == (1, [])
        return message.removeprefix("error: ")

    keys = 'either "models" (Blue Team) or "differentiating_images" (Red Team)'
    for content, message in {
        b"{}": f"must have {keys}",
        b"[]": f"must be an object with {keys}",
        b"{": "is not",
    }.items():
        Path(document).write_bytes(content)
        assert (line := error(url)).startswith(f"{document}: 1 problem: ")
        assert message in line
    Path(document).write_bytes(DOCUMENT)

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
        assert error(url).startswith("token: it is missing or has impossible characters; set HEADSTART_TOKEN")


def test_other_servers_get_no_token(
    document: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("HEADSTART_TOKEN", "token")
    answers: dict[tuple[int, bytes], str] = {
        (200, b"<html>Welcome"): "is not a portal (status 200)",
        (200, b"[" * 100_000): "is not a portal (status 200)",
        (301, b""): "redirects to https://example.org/; give that",
        (429, b'{"error": "Wait."}'): "answers: Wait.",
    }
    waiting = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            status, body = waiting.pop(0)
            self.send_response(status)
            for name, value in {"Location": "https://example.org/", "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        for words in answers.values():
            code, _, error = run(capsys, "submit", document, f"--url={url}")
            assert (code, f"url: {url} {words}" in error) == (1, True), error
        server.shutdown()


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
