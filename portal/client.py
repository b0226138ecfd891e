"""A participant's commands: `headstart submit` sends a document to a portal, `headstart submissions` lists all."""

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
ANSWER_SECONDS, MAX_ANSWER_BYTES = 120, 100_000_000
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
        say(f"The submission is still scored. To see it later: `headstart submissions --url={url}`", sys.stderr)
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
        token: The participant's token; that of the environment by default.

    Raises:
        UserError: It is not an address, or the token cannot be one.
    """

    def __init__(self, url: str, token: str | None) -> None:
        if not re.match("https?://[^/]", url):
            raise UserError(f"url: {url!r} is not an address; begin it with https:// or http://")
        token = (token or os.environ.get(TOKEN_VARIABLE, "")).strip()
        if not (token and token.isascii() and token.isprintable()):
            raise UserError(f"token: is missing or not a portal's; set {TOKEN_VARIABLE} to your token")
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(self, path: str, content: bytes | None = None) -> Any:  # noqa: ANN401 - any JSON value
        """Return the portal's answer.

        Args:
            path: Path of the request.
            content: Body of the request, which is a POST then.

        Raises:
            UserError: It cannot be reached, is no portal, or refuses the request.
        """
        try:
            request = Request(self._url + path, content, self._headers)
            with build_opener(_EveryAnswer).open(request, timeout=ANSWER_SECONDS) as answer:
                status, headers, body = answer.status, answer.headers, answer.read(MAX_ANSWER_BYTES)
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
            return UserError(f"url: {self._url} is not a portal (status {status}); give the address of its first page")
        return UserError(f"{'token' if status == 401 else f'url: {self._url} answers'}: {reason}")


class _EveryAnswer(HTTPErrorProcessor):
    """Returns errors and redirects as answers: another host must not get the token, and a POST not become a GET."""

    def http_response(self, request: Request, response: Any) -> Any:  # noqa: ANN401 - as the base class
        return response

    https_response = http_response


def _follow(portal: Portal, record: Record, wait: bool) -> Record:
    """Print each change of a submission, until it ends."""
    said = None
    while True:
        if said != (said := (record["state"], record["place_in_queue"])):
            say(_describe(record))
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
