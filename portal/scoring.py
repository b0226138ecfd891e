"""The two scores of a submission: the public one, and the one on stimuli and models that are held out."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from headstart.contract.challenge import challenge_path, read_challenge
from headstart.contract.documents import Catalog, Registry, catalog_path, read_catalog, read_registry, registry_path
from headstart.contract.problems import ContractError
from headstart.contract.submissions import check_submission
from headstart.evaluation.alignment.heatmap import draw_heatmap
from headstart.evaluation.alignment.scoring import score
from headstart.output.errors import UserError, reason_of
from headstart.portal.queue import FAILED_NOTE, Job, Outcome
from headstart.portal.settings import Settings
from headstart.portal.validation import DOCUMENT

# What another moment may mend: no room on the disk, too many open files, no memory.
PASSING = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM}


class PassingError(Exception):
    """What kept a submission from being scored may be over later."""


class Scorer:
    """Scores submissions by the documents that an organiser's settings name.

    Args:
        settings: The settings.

    Raises:
        UserError: A document cannot be read.
    """

    def __init__(self, settings: Settings) -> None:
        self._options = settings.extraction
        self._challenge = read_challenge(challenge_path(settings.challenge))
        self._registry = read_registry(registry_path(settings.registry))
        self._catalog = read_catalog(catalog_path(settings.catalog))
        more_models, more_stimuli = settings.held_out_registry, settings.held_out_catalog
        self._models = None if more_models is None else read_registry(registry_path(more_models))
        self._stimuli = None if more_stimuli is None else read_catalog(catalog_path(more_stimuli))

    def __call__(self, job: Job) -> Outcome:
        """Score a submission.

        Args:
            job: The scoring.

        Returns:
            How it ended; what is wrong with models and stimuli is for organisers to see.

        Raises:
            PassingError: It may go well later.
        """
        try:
            submission = check_submission(
                job.content, DOCUMENT, self._registry, self._catalog, challenge=self._challenge
            )
        except ContractError as error:
            # It was valid when it was handed in.
            note = "The rules have changed since it was handed in."
            return Outcome("refused", note, str(error), problems=[asdict(problem) for problem in error.problems])
        registry, catalog = self._shown(job)
        try:
            document, _ = score(submission, registry, catalog, self._options)
            return _describe(document, with_heatmap=job.kind == "public")
        except (UserError, OSError, RuntimeError, MemoryError) as error:
            if any(getattr(each, "errno", None) in PASSING for each in _chain(error)):
                raise PassingError(reason_of(error)) from error
            return Outcome("failed", FAILED_NOTE, f"{type(error).__name__}: {error}")

    def _shown(self, job: Job) -> tuple[Registry, Catalog]:
        """Give the models and stimuli of a scoring; a submission keeps those that it names."""
        if job.kind == "public":
            return self._registry, self._catalog
        return self._registry if job.track == "blue" else self._models or self._registry, self._stimuli or self._catalog


def _describe(document: dict[str, Any], with_heatmap: bool) -> Outcome:
    blue = document["team"] == "blue"

    def scored(key: str) -> float | None:
        mean = document.get(key)
        return None if mean is None else mean if blue else 1 - mean

    ends = (document.get("ci95") or {}).get("mean") or (None, None)
    # The higher the mean, the lower a Red Team's score.
    interval = ends if blue else [None if end is None else 1 - end for end in reversed(ends)]
    numbers = {
        "score": document["score"],
        "debiased": scored("mean_cka_debiased"),
        "calibrated": scored("mean_cka_calibrated"),
        "low": interval[0],
        "high": interval[1],
    }
    return Outcome(
        "scored",
        numbers=numbers,
        document=json.dumps(document, allow_nan=False),
        heatmap=_draw(document) if with_heatmap else None,
    )


def _draw(document: dict[str, Any]) -> bytes:
    pairwise = document["pairwise"]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "heatmap.png"
        title = f"Linear CKA (biased), {document['n_stimuli']} stimuli"
        draw_heatmap(pairwise["names"], np.array(pairwise["biased"]), title, path, "linear CKA")
        return path.read_bytes()


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
