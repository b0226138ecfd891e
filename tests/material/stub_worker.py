"""The portal's worker with a scorer that takes a moment: `python -m headstart.tests.material.stub_worker OPTIONS`."""

import random
import time

from headstart.portal import worker
from headstart.portal.documents import read_documents
from headstart.portal.queue import Job, Outcome
from headstart.portal.settings import parse_settings
from headstart.tests.material.stub_scores import StubScorer

if __name__ == "__main__":
    settings = parse_settings("")
    stub = StubScorer(read_documents(settings).bases)

    def slow_score(job: Job) -> Outcome:
        time.sleep(random.uniform(0, 0.1))
        return stub(job)

    worker.work(settings, slow_score)
