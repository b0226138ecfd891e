"""A participant's commands: `headstart submit` sends a document to a portal, `submissions` lists the team's."""

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from email.message import Message
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import HTTPErrorProcessor, Request, build_opener

from headstart.contract.problems import Problem
from headstart.contract.submissions import MAX_BYTES, find_team
from headstart.contract.untrusted_json import parse_json, read_limited
from headstart.output.errors import UserError, reason_of
from headstart.output.printable import say

TOKEN_VARIABLE = "HEADSTART_TOKEN"
WAITING = {"queue", "running"}
RESPONSE_SECONDS, MAX_RESPONSE_BYTES = 120, 100_000_000
POLL_SECONDS = 2.0
Record = dict[str, Any]


def submit(file: str, url: str, token: str | None = None, wait: bool = True) -> None:
    """Submit a document to a portal, and wait for its score.

    Run the same command again after Ctrl-C or a lost connection. It follows the same submission, which counts once.

    Args:
        file: The submission, in JSON.
        url: Address of the portal, such as https://challenge.example.org.
        token: Your token. The variable HEADSTART_TOKEN is safer, because no shell history keeps it.
        wait: Whether to wait for the score.

    Raises:
        UserError: The document is refused or has no score, or the portal cannot be used.
    """
    portal = Portal(url, token)
    try:
        content = read_limited(Path(file).expanduser(), MAX_BYTES, file)
        team = find_team(parse_json(content, file), file)
        record = _follow(portal, portal.ask(f"/api/submissions?team={team}", content), wait)
    except KeyboardInterrupt:
        say(f"The submission will still be scored. Its score: `headstart submissions --url={url}`", sys.stderr)
        raise
    for problem in record["problems"]:
        say(str(Problem(**problem)))
    if record["state"] not in {"scored", *WAITING}:
        raise UserError(f"file: submission {record['id']} of {file} has no score; its state is {record['state']}")


def list_submissions(url: str, token: str | None = None) -> None:
    """List your team's submissions to a portal, the latest first.

    Args:
        url: Address of the portal, such as https://challenge.example.org.
        token: Your token. The variable HEADSTART_TOKEN is safer, because no shell history keeps it.

    Raises:
        UserError: The portal cannot be used.
    """
    from headstart.output.tables import format_number, print_table

    records = list(Portal(url, token).submissions())
    rows = [["number", "team", "received (UTC)", "state", "place", "score", "debiased"]]
    for record in records:
        received, place = record["received"][:16].replace("T", " "), str(record["place_in_queue"] or "")
        scores = [format_number(record[name], ".6f") for name in ("score", "debiased")]
        rows.append([str(record["id"]), record["team"], received, record["state"], place, *scores])
    print_table(f"Submissions to {url}: {len(records)}", rows)
    for record in records:
        for reason in filter(None, [record["note"], *(str(Problem(**problem)) for problem in record["problems"][:1])]):
            say(f"{record['id']}: {reason}")


class Portal:
    """A portal, as a participant's programs see it.

    Args:
        url: Its address.
        token: The participant's token; by default, that in the environment variable HEADSTART_TOKEN.

    Raises:
        UserError: The address has no valid form, or the token is missing or contains characters that no token has.
    """

    def __init__(self, url: str, token: str | None) -> None:
        if not re.match("https?://[^/]", url):
            raise UserError(f"url: {url!r} is not an address; begin it with https:// or http://")
        token = (token or os.environ.get(TOKEN_VARIABLE, "")).strip()
        if not (token and token.isascii() and token.isprintable()):
            raise UserError(f"token: it is missing or has impossible characters; set {TOKEN_VARIABLE} to your token")
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(self, path: str, content: bytes | None = None) -> Any:  # noqa: ANN401 - any JSON value
        """Send a request, and return the portal's answer.

        Args:
            path: Path of the request.
            content: Body of a POST request; None for a GET request.

        Raises:
            UserError: The portal cannot be reached or refuses the request, or the address is not that of a portal.
        """
        try:
            request = Request(self._url + path, content, self._headers)
            with build_opener(_NoRedirects).open(request, timeout=RESPONSE_SECONDS) as response:
                status, headers, body = response.status, response.headers, response.read(MAX_RESPONSE_BYTES)
        except (OSError, HTTPException, ValueError, OverflowError) as error:
            cause = error.reason if isinstance(error, URLError) else error
            reason = cause if isinstance(cause, str) else reason_of(cause)
            raise UserError(f"url: {self._url} cannot be reached ({reason}); run the command again") from error

        document: Any = None
        with suppress(ValueError, RecursionError):
            document = json.loads(body)
        message = document.get("error") if isinstance(document, dict) else None
        if status not in {200, 201, 422} or document is None or message is not None:
            raise self._explain(status, headers, message)
        return document

    def submissions(self) -> Iterator[Record]:
        """Yield the participant's submissions, the latest first."""
        page = self.ask("/api/submissions")
        while page:
            yield from page
            page = self.ask(f"/api/submissions?before={page[-1]['id']}")

    def _explain(self, status: int, headers: Message, reason: str | None) -> UserError:
        if 300 <= status < 400:
            return UserError(f"url: {self._url} redirects to {headers.get('Location')}; give that address")
        if reason is None:
            return UserError(f"url: {self._url} is not a portal (status {status}); give the address of its home page")
        return UserError(f"{'token' if status == 401 else f'url: {self._url} answers'}: {reason}")


class _NoRedirects(HTTPErrorProcessor):
    """Returns errors and redirects like other responses.

    To follow a redirect could send the token to another host, or turn a POST request into a GET request.
    """

    def http_response(self, request: Request, response: Any) -> Any:  # noqa: ANN401 - as the base class
        return response

    https_response = http_response


def _follow(portal: Portal, record: Record, wait: bool) -> Record:
    """Print each change of a submission, until it is scored or has failed; return its last record."""
    printed = None
    while True:
        current = (record["state"], record["place_in_queue"])
        if current != printed:
            say(_describe(record))
            printed = current
        if not wait or record["state"] not in WAITING:
            return record
        time.sleep(POLL_SECONDS)
        record = portal.ask(f"/api/submissions/{record['id']}")


def _describe(record: Record) -> str:
    place, note = record["place_in_queue"], record["note"]
    if record["held_back"]:
        note = "does not count until it is scored again with today's documents and rules"
    parts = [f"Submission {record['id']}: {record['state']}", place and f"place {place} in the queue"]
    forms = {"score": "{:.6f}", "debiased": "debiased {:.6f}"}
    numbers = [form.format(record[name]) for name, form in forms.items() if record[name] is not None]
    return ", ".join(filter(None, [*parts, *numbers, note]))
