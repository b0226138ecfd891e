"""The process that scores: `headstart portal worker`. One works for a portal; another one waits until it ends."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from filelock import FileLock

from headstart.contract.stimulus_files import ROOT_VARIABLE
from headstart.output.parser import one_line_errors
from headstart.portal.database import UNAVAILABLE, Database
from headstart.portal.queue import Job, Outcome, claim, failed, finish, requeue
from headstart.portal.settings import Settings, parse_settings

POLL_SECONDS = 0.3
WAIT_SECONDS = 2.0
NICENESS = 10
LOCK = "worker.lock"
# Names the process of the server that started this one. The worker ends with the server.
SERVER_VARIABLE = "HEADSTART_PORTAL_SERVER"
_log = logging.getLogger(__name__)


@dataclass
class Worker:
    """Takes submissions from the queue, scores them and writes the results.

    Attributes:
        database: The portal's database.
        scorer: Scores a submission. Its exceptions fail the scoring.
        max_seconds: A scoring that takes longer fails, and `end` is called.
        end: Ends the process: nothing else stops a library.
        stopping: Set to end the work.
    """

    database: Database
    scorer: Callable[[Job], Outcome]
    max_seconds: float
    end: Callable[[], None] = lambda: os._exit(1)
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Work until `stopping` is set or the server ends; a scoring that has begun is finished first."""
        server = os.environ.get(SERVER_VARIABLE)
        while not self.stopping.is_set() and server in {None, str(os.getppid())}:
            try:
                job = claim(self.database)
            except UNAVAILABLE as error:
                self._wait_for_database(error)
                continue
            if job is None:
                self.stopping.wait(POLL_SECONDS)
            else:
                self._work_on(job)

    def _work_on(self, job: Job) -> None:
        timer = threading.Timer(self.max_seconds, self._give_up, [job])
        timer.daemon = True
        timer.start()
        try:
            outcome = self.scorer(job)
        except Exception as error:
            _log.exception("submission %d failed", job.id)
            outcome = failed("an unexpected error", f"{type(error).__name__}: {error}")
        finally:
            timer.cancel()
        self._finish(job, outcome)

    def _give_up(self, job: Job) -> None:
        """End the process whose scoring takes too long: what comes next need not wait for it."""
        error = f"the scoring took longer than {self.max_seconds / 60:g} minutes"
        self._finish(job, failed(error, error))
        self.end()

    def _finish(self, job: Job, outcome: Outcome) -> None:
        """Write a result, as soon as the database can be written; if the work must end before, it is scored again."""
        while True:
            try:
                finish(self.database, job, outcome)
                return
            except UNAVAILABLE as error:
                if self._wait_for_database(error):
                    return

    def _wait_for_database(self, error: Exception) -> bool:
        """Wait a moment, and return whether the work must end."""
        _log.warning("the database cannot be used: %s", str(error).partition("\n")[0])
        return self.stopping.wait(WAIT_SECONDS)


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
    database = Database(settings.folder)
    if scorer is None:
        from headstart.portal.scoring import Scorer

        scorer = Scorer(settings)

    worker = Worker(database, scorer, 60.0 * settings.scoring_minutes)
    with FileLock(settings.folder / LOCK):
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: worker.stopping.set())
        database.create_tables()
        requeue(database)
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
