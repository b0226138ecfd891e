"""Submissions and the leaderboard, under the same names on pages, for programs and in files."""

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session, joinedload

from headstart.contract.schema import Track
from headstart.contract.submissions import SCORE_NAMES
from headstart.portal.documents import BASIS, read_basis
from headstart.portal.queue import WAITING
from headstart.portal.tables import QUEUE_ORDER, FactRow, SubmissionRow, log_event

# A program may submit invalid documents all day, and their list must not slow the portal down.
PAGE_LENGTH = 100
# Scores that differ by less are equal: the mean over the same models in another order may differ in the last bit.
DECIMALS = 9
MEANS = ("mean_cka_biased", "mean_cka_debiased", "mean_cka_calibrated")
RESULT_NAMES = ("contract_version", "team", "n_models", "n_stimuli", "pairwise", *MEANS)
WITH_TEAM = joinedload(SubmissionRow.team, innerjoin=True)
Entry = dict[str, Any]


def read_records(session: Session, *conditions: ColumnElement[bool]) -> list[Entry]:
    """Return the latest 100 submissions that fulfil conditions as their teams may read them, the latest first."""
    latest = select(SubmissionRow).where(*conditions).order_by(SubmissionRow.id.desc()).limit(PAGE_LENGTH)
    waiting = select(SubmissionRow.id).where(SubmissionRow.state == "queue").order_by(*QUEUE_ORDER)
    places = {number: place for place, number in enumerate(session.scalars(waiting), 1)}
    basis = read_basis(session)
    return [_as_record(submission, places, basis) for submission in session.scalars(latest.options(WITH_TEAM))]


def _as_record(submission: SubmissionRow, places: dict[int, int], basis: str | None) -> Entry:
    # What changed rules refused keeps its earlier score in the database.
    is_refused = submission.state == "refused"
    scores = {name: None if is_refused else getattr(submission, name) for name in SCORE_NAMES}
    return {
        "id": submission.id,
        "participant": submission.team.name,
        "team": submission.track,
        "received": submission.received,
        "sha256": submission.sha256,
        "hidden": submission.hidden,
        "problems": submission.problems or [],
        "state": submission.state,
        "held_back": scores["score"] is not None and submission.basis != basis,
        "place_in_queue": places.get(submission.id),
        "note": submission.note,
        **scores,
        "ended": submission.ended,
    }


def read_result(session: Session, number: int) -> Entry:
    """Return the part of a submission's `score.json` that its team may read; empty without a score."""
    document = json.loads(session.scalar(select(SubmissionRow.document).where(SubmissionRow.id == number)) or "{}")
    return {name: document[name] for name in RESULT_NAMES if name in document}


def count_submissions(session: Session) -> dict[str, int]:
    """Count submissions by state."""
    return dict(session.execute(select(SubmissionRow.state, func.count()).group_by(SubmissionRow.state)).all())


def find_held_back(session: Session) -> list[int]:
    """Return the numbers of submissions whose score is of other documents or rules.

    A scoring that waits or runs will end by the documents of its time, and is left out.
    """
    ended = SubmissionRow.state.not_in([*WAITING, "refused"])
    query = select(SubmissionRow.id).where(ended, SubmissionRow.score.is_not(None)).order_by(SubmissionRow.id)
    return list(session.scalars(query.where(SubmissionRow.basis != read_basis(session))))


def record_basis(session: Session, basis: str) -> int:
    """Record what scores are computed from at present, so that no process computes them from anything else.

    Returns:
        The number of submissions that must be scored again. A change is logged for everybody.
    """
    before = read_basis(session)
    session.merge(FactRow(name=BASIS, value=basis))
    held_back = len(find_held_back(session))
    if held_back and before != basis:
        message = f"Documents or rules have changed. Submissions that must be scored again: {held_back}."
        log_event(session, "documents changed", message, public=True)
    return held_back


@dataclass(frozen=True)
class Board:
    """A leaderboard.

    Attributes:
        standings: Its lines, the best rank first: the best submission of each participant, with its scores and the
            number of the participant's scored submissions.
        held_back: Number of submissions that are not in it, because they were scored with other documents or rules.
    """

    standings: list[Entry]
    held_back: int


def rank_teams(session: Session, track: Track) -> Board:
    """Rank participants by scores of the same documents and rules.

    Args:
        session: Session of the portal's database.
        track: Team of the contract.
    """
    basis = read_basis(session)
    shown = (SubmissionRow.track == track, SubmissionRow.state != "refused", SubmissionRow.hidden.is_(False))
    query = select(SubmissionRow).where(*shown, SubmissionRow.score.is_not(None)).options(WITH_TEAM)

    lines: dict[int, list[Entry]] = {}
    held_back = 0
    for submission in session.scalars(query.order_by(SubmissionRow.received, SubmissionRow.id)):
        if submission.basis != basis:
            held_back += 1
            continue
        line = {
            "participant": submission.team.name,
            "submission": submission.id,
            **{name: getattr(submission, name) for name in SCORE_NAMES},
            "received": submission.received,
        }
        lines.setdefault(submission.team_id, []).append(line)

    # Of equal scores, the first is the earliest.
    best = [
        {**max(of_team, key=lambda line: round(line["score"], DECIMALS)), "submissions": len(of_team)}
        for of_team in lines.values()
    ]

    best.sort(key=lambda line: (-round(line["score"], DECIMALS), line["received"], line["submission"]))
    return Board([{"rank": rank, **line} for rank, line in enumerate(best, 1)], held_back)
