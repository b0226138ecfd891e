"""The process that scores: `headstart portal worker`. Several may run, also on several machines with one database."""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from headstart.contract.stimulus_files import ROOT_VARIABLE
from headstart.output.parser import one_line_errors
from headstart.portal.database import UNAVAILABLE, Database
from headstart.portal.queue import LEASE, Job, Outcome, claim, failed, finish, prolong
from headstart.portal.settings import Settings, parse_settings

POLL_SECONDS = 0.3
WAIT_SECONDS = 2.0
NICENESS = 10
# Names the process of the server that started this one. The worker ends with the server.
SERVER_VARIABLE = "HEADSTART_PORTAL_SERVER"
_log = logging.getLogger(__name__)


@dataclass
class Worker:
    """Claims scorings, computes them and writes the results.

    Attributes:
        database: The portal's database.
        scorer: Scores a submission. Its exceptions fail the scoring.
        max_seconds: A scoring that takes longer fails, and `end` is called.
        basis: Identifies the documents and rules that it scores by; None for a stub.
        end: Ends the process: nothing else stops a library.
        stopping: Set to end the work.
    """

    database: Database
    scorer: Callable[[Job], Outcome]
    max_seconds: float
    basis: str | None = None
    end: Callable[[], None] = lambda: os._exit(1)
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Work until `stopping` is set or the server ends; a scoring that has begun is finished first."""
        server = os.environ.get(SERVER_VARIABLE)
        while not self.stopping.is_set() and server in {None, str(os.getppid())}:
            try:
                job = claim(self.database, self.basis)
            except UNAVAILABLE as error:
                _warn("the database cannot be used", error)
                self.stopping.wait(WAIT_SECONDS)
                continue
            if job is None:
                self.stopping.wait(POLL_SECONDS)
            else:
                self._work_on(job)

    def _work_on(self, job: Job) -> None:
        scored, written = threading.Event(), threading.Event()
        heart = threading.Thread(target=self._keep_lease, args=(job, scored, written), daemon=True)
        heart.start()
        try:
            outcome = self.scorer(job)
        except Exception as error:
            _log.exception("submission %d failed", job.id)
            outcome = failed("an unexpected error", f"{type(error).__name__}: {error}")

        scored.set()
        # The lease is still prolonged: while the database is away, no other worker may score this again.
        while True:
            try:
                finish(self.database, job, outcome)
                break
            except UNAVAILABLE as error:
                _warn("the database cannot be written", error)
                # Where the worker must end, another one scores this again when the lease has run out.
                if self.stopping.wait(WAIT_SECONDS):
                    break
        written.set()
        heart.join()

    def _keep_lease(self, job: Job, scored: threading.Event, written: threading.Event) -> None:
        """Prolong the lease until the result is written.

        The process ends where the scoring takes too long, or is another's: what comes next need not wait for it.
        """
        last = time.monotonic() + self.max_seconds
        while not written.wait(min(LEASE.total_seconds() / 6, self.max_seconds)):
            try:
                if time.monotonic() > last and not scored.is_set():
                    error = f"the scoring took longer than {self.max_seconds / 60:g} minutes"
                    finish(self.database, job, failed(error, error))
                    self.end()
                    return
                if not prolong(self.database, job) and not scored.is_set():
                    _log.warning("submission %d is another worker's, or removed; this worker ends", job.id)
                    self.end()
                    return
            except UNAVAILABLE as unavailable:
                _warn("the lease cannot be prolonged", unavailable)


def work(settings: Settings, scorer: Callable[[Job], Outcome] | None = None) -> None:
    """Score submissions until SIGTERM or Ctrl-C; a scoring that has begun is finished first.

    Args:
        settings: The portal's settings.
        scorer: Scores a submission; by default as the settings say.
    """
    # Pages come first on a machine that runs both.
    os.nice(NICENESS)
    datasets = settings.find_datasets()
    if datasets is not None:
        os.environ[ROOT_VARIABLE] = str(datasets)
    database = Database(settings.database_url)
    if scorer is None:
        from headstart.portal.scoring import Scorer

        scorer = Scorer(settings)

    worker = Worker(database, scorer, 60.0 * settings.scoring_minutes, getattr(scorer, "basis", None))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stopping.set())
    database.create_tables()
    worker.run()
    database.close()


def main(args: Sequence[str] | None = None) -> None:
    """Run a worker.

    Args:
        args: Options, the portal's settings; those of the process by default.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s", stream=sys.stderr)
    with one_line_errors():
        work(parse_settings("Score the submissions of a portal.", args))


def _warn(message: str, error: Exception) -> None:
    _log.warning("%s: %s", message, str(error).partition("\n")[0])
