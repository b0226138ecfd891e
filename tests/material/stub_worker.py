"""The portal's worker with a scorer that takes a moment: `python -m headstart.tests.material.stub_worker OPTIONS`."""

import random
import time
from datetime import timedelta

from headstart.portal import queue, worker
from headstart.portal.queue import Job, Outcome
from headstart.portal.settings import parse_settings
from headstart.tests.material.stub_scores import stub_score


def slow_score(job: Job) -> Outcome:
    time.sleep(random.uniform(0, 0.1))
    return stub_score(job)


if __name__ == "__main__":
    # A short lease, so that a killed worker is noticed during a test.
    lease = timedelta(seconds=1)
    vars(queue)["LEASE"] = vars(worker)["LEASE"] = lease
    worker.work(parse_settings(""), slow_score)
