"""The score of a submission: that of the evaluation."""

import json
import re

from headstart.contract.problems import ContractError
from headstart.contract.submissions import check_submission
from headstart.evaluation.alignment.scoring import ScoringSetup, score
from headstart.output.errors import UserError, is_out_of_memory
from headstart.portal.documents import read_documents
from headstart.portal.queue import Job, Outcome, failed
from headstart.portal.settings import Settings

# Classes of errors by what their messages have; all other errors come from the models.
CLASSES = {
    "No space left|Disk quota exceeded|Too many open files": "the scoring machine has no free space",
    "^stimuli: |cannot be decoded|cannot be read at the moment": "a stimulus could not be read",
    "^extraction": "the scoring machine lacks a device or a folder",
    "returns NaN or infinite|undefined": "an embedding has no similarity to others",
}
OTHER_CLASS = "a model could not be loaded or run"


class Scorer:
    """Scores submissions by the documents that an organiser's settings name.

    Args:
        settings: The settings.

    Attributes:
        basis: Identifies the documents and rules that it scores by.

    Raises:
        UserError: A document cannot be read.
    """

    def __init__(self, settings: Settings) -> None:
        self._options = settings.extraction
        self._documents = read_documents(settings)
        self.basis = self._documents.basis

    def __call__(self, job: Job) -> Outcome:
        """Score a submission, and return its end; only organisers see errors of models and stimuli."""
        registry, catalog, rules = self._documents.registry, self._documents.catalog, self._documents.challenge
        try:
            submission = check_submission(job.content, "submission", registry, catalog, job.track, rules)
        except ContractError as error:
            # It was valid when it was submitted.
            note = "The rules have changed since it was submitted."
            return Outcome("refused", note, str(error), problems=error.problems)

        try:
            document = score(submission, ScoringSetup(registry, catalog, self._options))
            return Outcome("scored", document=json.dumps(document, allow_nan=False))
        except (UserError, OSError, RuntimeError, MemoryError) as error:
            return failed(_class_of(error), f"{type(error).__name__}: {error}")


def _class_of(error: Exception) -> str:
    """Return what a scoring failed of, without any name."""
    if is_out_of_memory(error):
        return "the scoring machine has too little memory"
    return next((reason for pattern, reason in CLASSES.items() if re.search(pattern, str(error))), OTHER_CLASS)
