"""A participant's commands: `headstart submit` sends a document to a portal, `headstart submissions` lists all."""

import hashlib
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
from typing import Any, Literal
from urllib.error import URLError
from urllib.request import HTTPErrorProcessor, Request, build_opener

from headstart.contract.problems import Problem
from headstart.contract.submissions import KEYS
from headstart.contract.untrusted_json import parse_json, read_limited
from headstart.output.errors import UserError, reason_of
from headstart.output.printable import say

TOKEN_VARIABLE = "HEADSTART_TOKEN"
WAITING = {"queue", "running"}
# Statuses of a portal that is busy, and of a proxy whose portal is being started again.
QUOTA, BUSY = 429, {429, 502, 503, 504}
BUSY_SECONDS = 30
ANSWER_SECONDS, MAX_ANSWER_BYTES = 120, 100_000_000
# The pause between two questions grows from the first to the second.
POLL_SECONDS = (1.0, 15.0)
Record = dict[str, Any]


def submit(
    file: str,
    url: str,
    token: str | None = None,
    team: Literal["blue", "red"] | None = None,
    wait: bool = True,
    again: bool = False,
    terms: str | None = None,
) -> None:
    """Submit a document to a portal, and wait for its score.

    Run the same command again after Ctrl-C or a lost connection. It then follows the same submission.

    Args:
        file: The submission, in JSON.
        url: Address of the portal, such as https://challenge.example.org.
        token: Your token. The variable HEADSTART_TOKEN is safer, because no shell history keeps it.
        team: Team of the contract; by default that of the document.
        wait: Whether to wait for the score.
        again: Whether to submit a document again that has a score already.
        terms: Version of the challenge's terms, if it has any, that you have read and accept.

    Raises:
        UserError: The document is refused or has no score, or the portal cannot be used.
    """
    portal = Portal(url, token)
    try:
        content = read_limited(Path(file).expanduser(), portal.max_bytes, file)
        if terms is not None:
            portal.ask("/api/terms", json.dumps({"version": terms}).encode())
        record = _follow(portal, _send(portal, file, content, team or _find_team(file, content), again), wait)
    except KeyboardInterrupt:
        say(f"The submission is still scored. To see it later: `headstart submissions --url={url}`", sys.stderr)
        raise
    _list_problems(record["problems"])
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
    for each in records:
        received, place = each["received"][:16].replace("T", " "), str(each["place_in_queue"] or "")
        scores = [format_number(each[name], ".6f") for name in ("score", "debiased_score")]
        rows.append([str(each["id"]), each["team"], received, each["state"], place, *scores])
    print_table(f"Submissions to {url}: {len(records)}", rows)
    for each in records:
        for reason in filter(None, [each["note"], *(str(Problem(**problem)) for problem in each["problems"][:1])]):
            say(f"{each['id']}: {reason}")


class Portal:
    """A portal, as a participant's programs see it.

    Args:
        url: Its address.
        token: The participant's token; that of the environment by default.

    Raises:
        UserError: The address is not that of a portal, or the token cannot be one.
    """

    def __init__(self, url: str, token: str | None) -> None:
        if not re.match("https?://[^/]", url):
            raise UserError(f"url: {url!r} is not an address; begin it with https:// or http://")
        token = (token or os.environ.get(TOKEN_VARIABLE, "")).strip()
        if not (token and token.isascii() and token.isprintable()):
            raise UserError(f"token: is missing or not a portal's; set {TOKEN_VARIABLE} to your token")
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._has_answered = False

        challenge = self.ask("/api/challenge")
        if not isinstance(challenge, dict) or not isinstance(challenge.get("max_submission_bytes"), int):
            raise self._explain(200, Message(), None)
        self.max_bytes: int = challenge["max_submission_bytes"]

    def ask(self, path: str, content: bytes | None = None, key: str = "") -> Any:  # noqa: ANN401 - any JSON value
        """Return the portal's answer, and wait while it is busy, or away after it was there.

        Args:
            path: Path of the request.
            content: Body of the request, which is a POST then.
            key: Key by which the portal knows that it is the same request.

        Raises:
            UserError: It cannot be reached, is no portal, or refuses the request.
        """
        more = {"Idempotency-Key": key} if key else {}
        while True:
            try:
                request = Request(self._url + path, content, {**self._headers, **more})
                with build_opener(_EveryAnswer).open(request, timeout=ANSWER_SECONDS) as answer:
                    status, headers, body = answer.status, answer.headers, answer.read(MAX_ANSWER_BYTES)
            except (OSError, HTTPException, ValueError, OverflowError) as error:
                cause = error.reason if isinstance(error, URLError) else error
                away = f"cannot be reached ({cause if isinstance(cause, str) else reason_of(cause)})"
                if not self._has_answered:
                    raise UserError(f"url: {self._url} {away}") from error
                status, headers, body = 503, Message(), json.dumps({"error": f"It {away}."}).encode()

            document: Any = None
            with suppress(ValueError, RecursionError):
                document = json.loads(body)
            reason = document.get("error") if isinstance(document, dict) else None
            if status in {200, 201, 422} and document is not None and reason is None:
                self._has_answered = True
                return document
            given = headers.get("Retry-After", "")
            # A portal that can be asked again soon says when; a quota of the day has no such time.
            if status not in BUSY or (status == QUOTA and not given):
                raise self._explain(status, headers, reason)
            seconds = int(given) if re.fullmatch(r"\d{1,5}", given) else BUSY_SECONDS
            say(f"Retrying {self._url} in {seconds} s: {reason or f'status {status}'}")
            time.sleep(seconds)

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
        if reason.startswith("terms: "):
            return UserError(f"{reason}; read them at {self._url}/blue or /red, then pass --terms=VERSION")
        return UserError(f"{'token' if status == 401 else f'url: {self._url} answers'}: {reason}")


class _EveryAnswer(HTTPErrorProcessor):
    """Returns errors and redirects as answers: another host must not get the token, and a POST not become a GET."""

    def http_response(self, request: Request, response: Any) -> Any:  # noqa: ANN401 - as the base class
        return response

    https_response = http_response


def _find_team(file: str, content: bytes) -> str:
    document = parse_json(content, file)
    teams = [team for team, key in KEYS.items() if isinstance(document, dict) and key in document]
    if len(teams) != 1:
        raise UserError(f"team: {file} has not one of the keys {', '.join(KEYS.values())}; give --team=blue or red")
    return teams[0]


def _send(portal: Portal, file: str, content: bytes, team: str, again: bool) -> Record:
    """Submit a document, unless the participant's latest submission of it waits or has a score."""
    digest = hashlib.sha256(content).hexdigest()
    same = (each for each in portal.submissions() if (each["sha256"], each["team"]) == (digest, team))
    latest = next(same, {"id": 0, "state": ""})
    if latest["state"] in WAITING or (latest["state"] == "scored" and not again):
        known = f"{file} is submission {latest['id']}, of {latest['received']}"
        say(known if latest["state"] in WAITING else f"{known}; --again=true submits it once more")
        return latest

    problems = portal.ask(f"/api/validate?team={team}", content)["problems"]
    if problems:
        _list_problems(problems)
        raise UserError(f"file: {file} breaks rules, problems: {len(problems)}; it was not submitted")
    # Until the portal has it, the same command makes the same key: an answer that is lost costs no quota.
    record: Record = portal.ask(
        f"/api/submissions?team={team}&again=true", content, key=f"{digest}-{team}-{latest['id']}"
    )
    return record


def _follow(portal: Portal, record: Record, wait: bool) -> Record:
    """Print each change of a submission, until it ends."""
    said, (pause, longest) = None, POLL_SECONDS
    while True:
        if said != (said := (record["state"], record["place_in_queue"])):
            say(_describe(record))
        if not wait or record["state"] not in WAITING:
            return record
        time.sleep(pause)
        pause = min(1.5 * pause, longest)
        record = portal.ask(f"/api/submissions/{record['id']}")


def _describe(record: Record) -> str:
    forms = {
        "place_in_queue": "place {} in the queue",
        "expected_seconds": "about {:.0f} s",
        "score": "{:.6f}",
        "debiased_score": "debiased {:.6f}",
        "note": "{}",
    }
    if record.get("held_back"):
        record = {**record, "note": "does not count until it is scored again with today's documents and rules"}
    parts = [form.format(record[name]) for name, form in forms.items() if record.get(name) not in (None, "")]
    return ", ".join([f"Submission {record['id']}: {record['state']}", *parts])


def _list_problems(problems: list[dict[str, str]]) -> None:
    for problem in problems:
        say(str(Problem(**problem)))
