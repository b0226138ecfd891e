"""A portal of 200 teams and 2,000 submissions under load: readers, participants, a busy worker, long documents.

The web server and the worker are processes of their own; a scoring keeps a processor busy. The readers are in this
process, so that what they wait for is measured with their own work in it.
"""

import asyncio
import itertools
import json
import multiprocessing
import random
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from headstart.benchmarks.speed.frame import temporary_folder
from headstart.portal.database import Database
from headstart.portal.documents import basis_key, read_documents
from headstart.portal.queue import Job, Outcome
from headstart.portal.settings import Settings
from headstart.portal.tables import Scores, ScoringRow, SubmissionRow, log_event
from headstart.portal.teams import add_team
from headstart.portal.worker import work

STIMULI, RED, UNKNOWN = 20_000, 1000, 10_000
# Teams that are logged in.
READERS = 50
NAMES = [f"model_{number}" for number in range(20)]
OPTIONS: dict[str, Any] = {
    "challenge": "contract",
    "registry": "configs/registry/embedded.json",
    "submissions_per_minute": 100_000,
    "validations_per_minute": 100_000,
    "worker": False,
    "port": 0,
}


def main(teams: int = 200, submissions: int = 2000, readers: int = 50, seconds: float = 30, pause: float = 1.0) -> None:
    """Fill a portal, load it, and print how long answers took.

    Args:
        teams: Participants.
        submissions: Scored submissions, half of each team of the contract.
        readers: Readers who load the leaderboard again and again, every tenth of them logged in.
        seconds: Duration of the load.
        pause: Seconds that a reader waits after each answer.
    """
    with temporary_folder() as folder:
        catalog = folder / "catalog.jsonl"
        catalog.write_text("".join(f"{json.dumps(stimulus)}\n" for stimulus in _stimuli(0, STIMULI)))
        options = {**OPTIONS, "catalog": str(catalog), "data": str(folder)}
        settings, config = Settings(**options), folder / "portal.yaml"
        config.write_text(json.dumps({**options, "held_out_registry": None, "held_out_catalog": None}))
        tokens = _fill(settings, teams, submissions)

        command = [sys.executable, "-m", "headstart", "portal", f"--config={config}", "--demonstration=false"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        worker = multiprocessing.get_context("spawn").Process(target=work, args=(settings, score_slowly))
        worker.start()
        try:
            assert server.stdout is not None
            address = server.stdout.readline().split()[4].rstrip(".")
            taken = asyncio.run(_load(address, tokens, readers, seconds, pause))
        finally:
            worker.terminate()
            server.terminate()
            worker.join()
            server.wait()

    print(f"{teams} teams, {submissions:,} submissions, {readers} readers, {seconds:.0f} s")
    for kind, times in sorted(taken.items()):
        median, most = 1000 * statistics.median(times), 1000 * sorted(times)[int(0.95 * len(times))]
        print(f"{kind}: {len(times)} answers, median {median:.0f} ms, 95 % within {most:.0f} ms")


def score_slowly(job: Job) -> Outcome:
    """Score nothing for a second, with a processor that is busy."""
    end = time.process_time() + 1
    while time.process_time() < end:
        pass
    return Outcome("scored", **_results(job.track, random.Random(job.submission_id).random()))


def _results(track: str, score: float) -> dict[str, Any]:
    matrix = [[score] * len(NAMES) for _ in NAMES]
    pairwise = {"names": NAMES, "biased": matrix, "debiased": matrix}
    document = json.dumps({"team": track, "n_models": len(NAMES), "n_stimuli": RED, "pairwise": pairwise})
    return {"scores": Scores(score, score, score, score - 0.01, score + 0.01), "document": document}


def _stimuli(first: int, count: int, name: str = "photos") -> list[dict[str, str]]:
    return [{"dataset_name": name, "image_identifier": f"{number:06}.jpg"} for number in range(first, first + count)]


def _fill(settings: Settings, teams: int, submissions: int) -> list[str]:
    """Add teams, scored submissions and one to be scored, and return the teams' tokens."""
    database = Database(settings.database_url)
    database.create_tables()
    begin, generator = datetime.now(UTC) - timedelta(days=30), random.Random(0)
    content, bases = json.dumps({"models": NAMES}).encode(), read_documents(settings).bases

    with database.writing() as session:
        tokens = [add_team(session, f"Team number {number}") for number in range(teams)]
        for number in range(submissions):
            at, team, track = begin + timedelta(minutes=number), 1 + number % teams, ("blue", "red")[number % 2]
            row = SubmissionRow(team_id=team, track=track, received=at, content=content)
            row.size, row.sha256 = len(content), f"{number:064}"
            session.add(row)
            session.flush()

            times = {"queued": at, "started": at, "ended": at}
            basis = bases[basis_key(track, "public")]
            scoring = ScoringRow(submission_id=row.id, kind="public", state="scored", basis=basis, **times)
            for name, value in _results(track, generator.random()).items():
                setattr(scoring, name, value)
            session.add(scoring)
            for kind in ("received", "scored"):
                log_event(session, at, kind, f"Submission {row.id}: {kind}.", team, row.id, public=True)
        scoring.state = "queue"
    database.close()
    return tokens


async def _load(address: str, tokens: list[str], readers: int, seconds: float, pause: float) -> dict[str, list[float]]:
    """Request pages and submit documents for some time, and return the seconds of each answer, by its kind."""
    taken: dict[str, list[float]] = defaultdict(list)
    end = time.monotonic() + seconds
    # Shorter than the server's, so that no connection is used at the moment at which the server closes it.
    limits = httpx.Limits(max_connections=None, keepalive_expiry=2)
    async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:
        cookies = {}
        for token in tokens[:READERS]:
            answer = await client.post("/login", data={"token": token})
            cookies[token] = answer.headers["set-cookie"].partition(";")[0]
        client.cookies.clear()

        async def request(kind: str, path: str, token: str = "", stimuli: list[dict[str, str]] | None = None) -> None:
            # Programs send the token, and browsers a cookie.
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            headers |= {"Cookie": cookies[token]} if token in cookies else {}
            content = json.dumps({"differentiating_images": stimuli}).encode() if stimuli else None
            start = time.perf_counter()
            answer = await client.request("POST" if stimuli else "GET", path, content=content, headers=headers)
            taken[kind].append(time.perf_counter() - start)
            answer.raise_for_status()

        async def repeat(wait: float, act: Callable[[int], Awaitable[None]]) -> None:
            await asyncio.sleep(random.random() * wait)
            for number in itertools.count():
                if time.monotonic() > end:
                    return
                await act(number)
                await asyncio.sleep(wait)

        async def browse(number: int) -> None:
            team = number % len(cookies)
            for path in ("/", "/log", "/submissions", "/blue"):
                await request(f"page {path}", path, tokens[team])
            await request("page of a submission", f"/submissions/{1 + team}", tokens[team])

        async def submit(number: int) -> None:
            path, token = "/api/submissions?team=red", tokens[number % len(tokens)]
            await request("submitting 1,000 stimuli", path, token, _stimuli(number, RED))

        async def check(_: int) -> None:
            await request("checking unknown stimuli", "/api/validate?team=red", stimuli=_stimuli(0, UNKNOWN, "none"))

        def read(token: str) -> Awaitable[None]:
            return repeat(pause, lambda _: request("leaderboard", "/leaderboard", token))

        reading = [read("" if reader % 10 else tokens[reader]) for reader in range(readers)]
        await asyncio.gather(*reading, repeat(0.5, browse), repeat(1, submit), repeat(0.2, check))
    return taken
