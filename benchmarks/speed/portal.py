"""A portal of 200 teams and 2,000 submissions under load: readers, participants, a busy worker, long documents.

The web server is a process of its own, and so is the worker, whose stub takes a processor as long as a scoring may. The
readers are in this process, so that what they wait for is measured with their own work in it.
"""

from __future__ import annotations

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
from pathlib import Path

import httpx
import jsonargparse

from headstart.benchmarks.speed.frame import temporary_folder
from headstart.portal.records.accounts import add_team
from headstart.portal.records.database import Database
from headstart.portal.records.log import log_event
from headstart.portal.records.scores import Scores
from headstart.portal.records.submissions import count_submissions
from headstart.portal.records.tables import ScoringRow, SubmissionRow
from headstart.portal.settings import Settings
from headstart.portal.work.queue import Job, Outcome, enqueue
from headstart.portal.work.worker import work

STIMULI, RED = 20_000, 1000
# Of a submission, what a scoring of 20 models writes.
PICTURE = bytes(30_000)
NAMES = [f"model_{number}" for number in range(20)]
Seconds = dict[str, list[float]]


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
        settings = _write_settings(folder)
        database = Database(settings.database_url)
        database.create_tables()
        tokens = _fill(database, teams, submissions)

        server = subprocess.Popen(
            [sys.executable, "-m", "headstart", "portal", f"--config={folder / 'portal.yaml'}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        # The worker and the server are processes of their own.
        worker = multiprocessing.get_context("spawn").Process(target=work, args=(settings, take_a_processor))
        try:
            assert server.stdout is not None
            address = server.stdout.readline().split()[4].rstrip(".")
            worker.start()

            while _count(database).get("queue", 0):
                time.sleep(0.1)
            scored = _count(database)["scored"]
            taken = asyncio.run(_load(address, tokens, readers, seconds, pause))
            scored = _count(database)["scored"] - scored
        finally:
            worker.terminate()
            server.terminate()
            worker.join()
            server.wait()
        database.close()

    print(f"{teams} teams, {submissions:,} submissions, {readers} readers, {seconds:.0f} s; {scored} scored meanwhile")
    for kind, times in sorted(taken.items()):
        cuts = statistics.quantiles(times, n=20)
        figures = f"median {1000 * statistics.median(times):.0f} ms, 95 % within {1000 * cuts[-1]:.0f} ms"
        print(f"{kind}: {len(times)} answers, {figures}, the longest {1000 * max(times):.0f} ms")


def take_a_processor(job: Job) -> Outcome:
    """Score nothing for a second, with a processor that is busy."""
    end = time.process_time() + 1
    while time.process_time() < end:
        pass
    score = random.Random(job.submission_id).random()
    return Outcome("scored", scores=_scores(score), document=_document(job.track, score), heatmap=PICTURE)


def _write_settings(folder: Path) -> Settings:
    stimuli = ({"dataset_name": "photos", "image_identifier": f"{number:06}.jpg"} for number in range(STIMULI))
    (folder / "catalog.jsonl").write_text("".join(f"{json.dumps(stimulus)}\n" for stimulus in stimuli))
    given: dict[str, object] = {
        "challenge": "contract",
        "registry": "configs/registry/embedded.json",
        "catalog": str(folder / "catalog.jsonl"),
        "data": str(folder),
        "submissions_per_minute": 100_000,
        "validations_per_minute": 100_000,
    }
    here = {"held_out_registry": None, "held_out_catalog": None, "demonstration": False, "worker": False, "port": 0}
    (folder / "portal.yaml").write_text(json.dumps({**given, **here}))
    return Settings(**given)  # type: ignore[arg-type] # each is what its field wants


def _fill(database: Database, teams: int, submissions: int) -> list[str]:
    """Add teams, and submissions that are scored, and give the teams' tokens."""
    tokens = [add_team(database, f"Team number {number}") for number in range(teams)]
    begin, draw = datetime.now(UTC) - timedelta(days=30), random.Random(0)
    with database.writing() as session:
        for number in range(submissions):
            at, team, track = begin + timedelta(minutes=number), 1 + number % teams, ("blue", "red")[number % 2]
            content = json.dumps({"models": NAMES}).encode()
            row = SubmissionRow(team_id=team, track=track, key=str(number), content=content, sha256="0" * 64)
            row.received = at
            session.add(row)
            session.flush()
            score = draw.random()
            if number == submissions - 1:
                # Once this one is scored, the worker is at work.
                enqueue(session, row.id, "public", 1, at)
                continue
            scoring = ScoringRow(
                submission_id=row.id, kind="public", state="scored", queued=at, not_before=at, ended=at
            )
            scoring.scores = _scores(score)
            scoring.document, scoring.heatmap = _document(track, score), PICTURE
            session.add(scoring)
            for kind in ("received", "scored"):
                log_event(session, at, kind, f"Submission {row.id}: {kind}.", team, row.id, public=True)
    return tokens


def _scores(score: float) -> Scores:
    return Scores(score, score, score, score - 0.01, score + 0.01)


def _count(database: Database) -> dict[str, int]:
    with database.reading() as session:
        return count_submissions(session)


def _document(track: str, score: float) -> str:
    matrix = [[score] * len(NAMES) for _ in NAMES]
    pairwise = {"names": NAMES, "biased": matrix, "debiased": matrix}
    return json.dumps({"team": track, "n_models": len(NAMES), "n_stimuli": RED, "pairwise": pairwise})


async def _load(address: str, tokens: list[str], readers: int, seconds: float, pause: float) -> Seconds:
    """Ask for pages and hand in documents for some time, and give what each answer took, by what it was."""
    taken: Seconds = defaultdict(list)
    end = time.monotonic() + seconds
    # Shorter than the server's, lest a connection is used in the moment in which that closes it.
    limits = httpx.Limits(max_connections=None, keepalive_expiry=2)
    async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:

        async def ask(what: str, method: str, path: str, token: str = "", content: bytes | None = None) -> None:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            start = time.perf_counter()
            answer = await client.request(method, path, content=content, headers=headers)
            taken[what].append(time.perf_counter() - start)
            answer.raise_for_status()

        async def again(wait: float, act: Callable[[int], Awaitable[None]]) -> None:
            await asyncio.sleep(random.random() * wait)
            for number in itertools.count():
                if time.monotonic() > end:
                    return
                await act(number)
                await asyncio.sleep(wait)

        async def read(reader: int, number: int) -> None:
            await ask("leaderboard", "GET", "/leaderboard", tokens[reader] if reader % 10 == 0 else "")

        async def look(number: int) -> None:
            token = tokens[number % len(tokens)]
            for path in ("/", "/log", "/submissions", "/blue"):
                await ask(f"page {path}", "GET", path, token)
            await ask("page of a submission", "GET", f"/submissions/{1 + number % len(tokens)}", token)

        async def hand_in(number: int) -> None:
            stimuli = [
                {"dataset_name": "photos", "image_identifier": f"{i:06}.jpg"} for i in range(number, number + RED)
            ]
            content = json.dumps({"differentiating_images": stimuli}).encode()
            token = tokens[number % len(tokens)]
            await ask("handing in 1,000 stimuli", "POST", "/api/submissions?team=red", token, content)

        async def check(number: int) -> None:
            entries = [{"dataset_name": "photos", "image_identifier": f"none {i}"} for i in range(10_000)]
            content = json.dumps({"differentiating_images": entries}).encode()
            await ask("checking 10,000 unknown stimuli", "POST", "/api/validate?team=red", content=content)

        tasks = [again(pause, lambda number, reader=reader: read(reader, number)) for reader in range(readers)]  # type: ignore[misc]
        await asyncio.gather(*tasks, again(0.5, look), again(1, hand_in), again(0.2, check))
    return taken


if __name__ == "__main__":
    jsonargparse.auto_cli(main)
