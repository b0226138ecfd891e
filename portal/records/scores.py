"""The numbers of a score, declared once: tables, records, pages, JSON, exports and the leaderboard use them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Scores:
    """The numbers of one scoring; None where one is undefined or not computed.

    Attributes:
        score: The score; higher is better.
        debiased: The score by the debiased estimate.
        calibrated: The score calibrated against chance.
        low: Lower end of the score's 95 % interval over stimuli.
        high: Upper end of that interval.
        with_epsilon: The score with the epsilon that the rules name.
    """

    score: float | None = None
    debiased: float | None = None
    calibrated: float | None = None
    low: float | None = None
    high: float | None = None
    with_epsilon: float | None = None

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Scores:
        """Read the numbers from the content of `score.json`.

        A Blue Team's numbers are means of CKA, a Red Team's are 1 minus these means.
        """
        is_blue = document["team"] == "blue"
        low, high = (document.get("ci95") or {}).get("mean") or (None, None)

        def as_score(mean: float | None) -> float | None:
            return mean if is_blue or mean is None else 1 - mean

        return cls(
            score=document["score"],
            debiased=as_score(document.get("mean_cka_debiased")),
            calibrated=as_score(document.get("mean_cka_calibrated")),
            low=as_score(low if is_blue else high),
            high=as_score(high if is_blue else low),
            with_epsilon=document.get("score_with_epsilon"),
        )

    def as_json(self) -> dict[str, Any]:
        """Return the numbers under their names in the JSON interface."""
        return {
            "score": self.score,
            "debiased_score": self.debiased,
            "calibrated_score": self.calibrated,
            "ci95": None if self.low is None else [self.low, self.high],
            "score_with_epsilon": self.with_epsilon,
        }


SCORE_NAMES = tuple(field.name for field in fields(Scores))
