"""The two scores of a submission: the public one, and the one on held-out stimuli or models."""

import errno
import json
import re
from dataclasses import asdict
from io import BytesIO
from typing import Any

import numpy as np

from headstart.contract.problems import ContractError
from headstart.contract.submissions import check_submission
from headstart.evaluation.alignment.heatmap import plot_heatmap
from headstart.evaluation.alignment.scoring import ScoringSetup, score
from headstart.output.errors import UserError, chain_of, is_out_of_memory, reason_of
from headstart.output.figures import save
from headstart.portal.phases import all_bases, read_phases
from headstart.portal.records.scores import Scores
from headstart.portal.settings import Settings
from headstart.portal.work.queue import Job, Outcome, failed
from headstart.portal.work.validation import DOCUMENT

# Errors that may be over later: a full disk, too many open files, too little memory.
TRANSIENT = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM}

# Classes of errors by what their messages have; all other errors come from the models.
CLASSES = {
    "^stimuli: |cannot be decoded|cannot be read at the moment": "a stimulus could not be read",
    "^extraction": "the scoring machine lacks a device or a folder",
    "returns NaN or infinite|undefined": "an embedding has no similarity to others",
}
OTHER_CLASS = "a model could not be loaded or run"


class TransientError(Exception):
    """The reason why a submission could not be scored may be over later."""


class Scorer:
    """Scores submissions by the documents that an organiser's settings name.

    Args:
        settings: The settings.

    Attributes:
        bases: What it computes scores from, by phase, team of the contract and kind.

    Raises:
        UserError: A document cannot be read.
    """

    def __init__(self, settings: Settings) -> None:
        self._options = settings.extraction
        phases = read_phases(settings)
        self._phases = {phase.name: phase for phase in phases}
        self.bases = all_bases(phases)

    def __call__(self, job: Job) -> Outcome:
        """Score a submission.

        Args:
            job: The scoring.

        Returns:
            Its end; only organisers see errors of models and stimuli.

        Raises:
            TransientError: A later attempt may succeed.
        """
        phase = self._phases[job.phase]
        try:
            submission = check_submission(
                job.content, DOCUMENT, phase.registry, phase.catalog, challenge=phase.challenge
            )
        except ContractError as error:
            # It was valid when it was submitted.
            note = "The rules have changed since it was submitted."
            return Outcome("refused", note, str(error), problems=[asdict(problem) for problem in error.problems])

        registry, catalog = phase.documents(job.track, job.kind)
        try:
            setup = ScoringSetup(registry, catalog, self._options)
            document, _ = score(submission, setup, phase.challenge.score.epsilon)
            return Outcome(
                "scored",
                scores=Scores.from_document(document),
                document=json.dumps(document, allow_nan=False),
                heatmap=_plot_heatmap(document) if job.kind == "public" else None,
            )
        except (UserError, OSError, RuntimeError, MemoryError) as error:
            if any(getattr(each, "errno", None) in TRANSIENT for each in chain_of(error)):
                raise TransientError(reason_of(error)) from error
            return failed(_class_of(error), f"{type(error).__name__}: {error}")


def _class_of(error: Exception) -> str:
    """Return what a scoring failed of, without any name."""
    if is_out_of_memory(error):
        return "the scoring machine has too little memory"
    return next((reason for pattern, reason in CLASSES.items() if re.search(pattern, str(error))), OTHER_CLASS)


def _plot_heatmap(document: dict[str, Any]) -> bytes:
    pairwise = document["pairwise"]
    title = f"Linear CKA (biased), {document['n_stimuli']} stimuli"
    content = BytesIO()
    save(plot_heatmap(pairwise["names"], np.array(pairwise["biased"]), title, "linear CKA"), content)
    return content.getvalue()
