"""A stub for the scoring of a submission."""

import json
from dataclasses import dataclass

from headstart.contract.schema import Team
from headstart.portal.queue import Job, Outcome

MODELS = ("owl", "lark", "wren", "rook")


@dataclass
class StubScorer:
    """Scores a document by its length, so that equal documents have equal scores.

    Attributes:
        bases: What it claims to compute scores from.
    """

    bases: dict[Team, str]

    def __call__(self, job: Job) -> Outcome:
        value = 1 / len(job.content)
        matrix = [[1.0, value], [value, 1.0]]
        document = {
            "contract_version": "1.0",
            "team": job.track,
            "score": value,
            "n_models": 2,
            "n_stimuli": 8,
            "mean_cka_biased": value,
            "mean_cka_debiased": value / 2,
            "ci95": {"mean": [value - 0.01, value + 0.01]},
            "pairwise": {"names": list(MODELS[:2]), "biased": matrix, "debiased": matrix},
            "digests": {"registry": "0" * 64},
            "timings": {"cka_seconds": 1.0},
        }
        documents = [json.dumps(document), json.dumps({**document, "score": 1 - value})]
        return Outcome("scored", basis=self.bases[job.track], documents=documents)
