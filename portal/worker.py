"""The process that scores: `headstart portal worker`; several may run, on several machines that share a database."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from headstart.output.parser import one_line_errors
from headstart.portal.command_line import parse_settings
from headstart.portal.database import AWAY, Database
from headstart.portal.queue import FAILED_NOTE, LEASE, Job, Outcome, claim, finish, prolong, put_back
from headstart.portal.settings import Settings
from headstart.portal.stimuli import use_datasets

T = TypeVar("T")

POLL_SECONDS = 0.3
LONGEST_WAIT_SECONDS = 5.0
NICENESS = 10
# Process of the server that started this one, with which it ends.
SERVER_VARIABLE = "HEADSTART_PORTAL_SERVER"
_log = logging.getLogger(__name__)


class Worker:
    """Claims scorings, scores, and writes what came out.

    Args:
        database: The portal's.
        scorer: What scores; a `PassingError` of it puts the scoring back, any other exception fails it.
        name: What the process is called in the database.
        most_seconds: A scoring that takes longer fails, and `end` is called.
        end: Ends the process: nothing else stops what a library is at.
    """

    def __init__(
        self,
        database: Database,
        scorer: Callable[[Job], Outcome],
        name: str,
        most_seconds: float,
        end: Callable[[], None] = lambda: os._exit(1),
    ) -> None:
        self._database = database
        self._scorer = scorer
        self._name = name
        self._most_seconds = most_seconds
        self._end = end
        self.stopping = threading.Event()

    def run(self) -> None:
        """Work until `stopping` is set or the server ends, and what was begun by then is done."""
        server = os.environ.get(SERVER_VARIABLE)
        while not self.stopping.is_set() and server in {None, str(os.getppid())}:
            try:
                job = claim(self._database, self._name)
            except AWAY as error:
                _log.warning("the database cannot be used: %s", _first_line(error))
                self.stopping.wait(LONGEST_WAIT_SECONDS)
                continue
            if job is None:
                self.stopping.wait(POLL_SECONDS)
            else:
                self._do(job)

    def _do(self, job: Job) -> None:
        scored, ended = threading.Event(), threading.Event()
        heart = threading.Thread(target=self._keep, args=(job, scored, ended), daemon=True)
        heart.start()
        try:
            write = self._score(job)
            scored.set()
            # The lease is still prolonged: what was computed is not to be computed again while the database is away.
            self._insist(write)
        finally:
            ended.set()
            heart.join()

    def _score(self, job: Job) -> Callable[[], object]:
        """Score, and give what writes down how that ended."""
        from headstart.portal.scoring import PassingError

        try:
            outcome = self._scorer(job)
        except PassingError as error:
            note, reason = "It will be tried again soon: the machine that scores has no room at present.", str(error)
            return lambda: put_back(self._database, job, note, reason)
        except Exception as error:
            _log.exception("submission %d failed", job.submission_id)
            outcome = Outcome("failed", FAILED_NOTE, f"{type(error).__name__}: {error}")
        return lambda: finish(self._database, job, outcome)

    def _insist(self, write: Callable[[], T]) -> T:
        """Write once the database is there, and has room."""
        wait = POLL_SECONDS
        while True:
            try:
                return write()
            except AWAY as error:
                _log.warning("the database cannot be written: %s", _first_line(error))
                threading.Event().wait(wait)
                wait = min(2 * wait, LONGEST_WAIT_SECONDS)

    def _keep(self, job: Job, scored: threading.Event, ended: threading.Event) -> None:
        """Prolong the lease, until the scoring has ended or takes too long."""
        last = time.monotonic() + self._most_seconds
        while not ended.wait(min(LEASE.total_seconds() / 6, self._most_seconds)):
            try:
                if time.monotonic() > last and not scored.is_set():
                    error = f"the scoring took longer than {self._most_seconds / 60:g} minutes"
                    finish(self._database, job, Outcome("failed", FAILED_NOTE, error))
                    self._end()
                    return
                if not prolong(self._database, job):
                    return
            except AWAY as error:
                _log.warning("the lease cannot be prolonged: %s", _first_line(error))


def process_name(number: int) -> str:
    """Give the name of a process of this machine in the database."""
    return f"{socket.gethostname()}:{number}"


def work(settings: Settings, scorer: Callable[[Job], Outcome] | None = None) -> None:
    """Score submissions until SIGTERM or Ctrl-C comes, after which what was begun is done first.

    Args:
        settings: The portal's.
        scorer: What scores; by default what the settings say.
    """
    # Pages come first on a machine that has both.
    os.nice(NICENESS)
    use_datasets(settings)
    database = Database(settings.database_url)
    if scorer is None:
        from headstart.portal.scoring import Scorer

        scorer = Scorer(settings)
    worker = Worker(database, scorer, process_name(os.getpid()), 60.0 * settings.scoring_minutes)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stopping.set())
    wait_for_tables(database, worker.stopping)
    worker.run()
    database.close()


def wait_for_tables(database: Database, stopping: threading.Event) -> None:
    """Create the tables that are missing, once the database is there."""
    while not stopping.is_set():
        try:
            database.create_tables()
            return
        except AWAY as error:
            _log.warning("the database cannot be used: %s", _first_line(error))
            stopping.wait(LONGEST_WAIT_SECONDS)


def main(args: Sequence[str] | None = None) -> None:
    """Run a worker.

    Args:
        args: Options, the portal's settings; those of the process by default.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s", stream=sys.stderr)
    with one_line_errors():
        work(parse_settings("Score what is handed in at a portal.", args))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
