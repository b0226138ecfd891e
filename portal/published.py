"""What of the portal is told in JSON, and no more: what is held out, digests and paths are never in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headstart.portal.database import EventRow
from headstart.portal.leaderboard import Standing
from headstart.portal.records import Record

# Of score.json. Its digests would tell when held-back documents change, and its timings what is computed.
OF_SCORE = (
    "contract_version",
    "team",
    "n_models",
    "n_stimuli",
    "mean_cka_biased",
    "mean_cka_debiased",
    "mean_cka_calibrated",
)


def publish_record(record: Record) -> dict[str, Any]:
    """Give a submission as its team may read it."""
    return {
        "id": record.id,
        "participant": record.team,
        "team": record.track,
        "received": record.received.isoformat(),
        "state": record.state,
        "place_in_queue": record.place,
        "note": record.note,
        "problems": record.problems,
        "score": record.score,
        "debiased_score": record.debiased,
        "calibrated_score": record.calibrated,
        "ci95": None if record.low is None else [record.low, record.high],
        "ended": None if record.ended is None else record.ended.isoformat(),
        "sha256": record.sha256,
    }


def publish_score(document: Mapping[str, Any], with_matrix: bool) -> dict[str, Any]:
    """Give what may be read of the content of `score.json`."""
    shown = {key: document[key] for key in OF_SCORE if key in document}
    return {**shown, "pairwise": document["pairwise"]} if with_matrix else shown


def publish_standing(standing: Standing, with_held_out: bool) -> dict[str, Any]:
    """Give a line of the leaderboard."""
    shown = {
        "rank": standing.rank,
        "participant": standing.team,
        "submission": standing.submission_id,
        "score": standing.score,
        "debiased_score": standing.debiased,
        "calibrated_score": standing.calibrated,
        "ci95": None if standing.low is None else [standing.low, standing.high],
        "received": standing.received.isoformat(),
        "submissions": standing.submissions,
    }
    return {**shown, "held_out_score": standing.held_out} if with_held_out else shown


def publish_event(event: EventRow) -> dict[str, Any]:
    """Give a line of the log."""
    return {"id": event.id, "time": event.at.isoformat(), "event": event.kind, "text": event.text}
