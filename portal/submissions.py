"""Submissions and the leaderboard, under the same names on pages, for programs and in files."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, or_, select
from sqlalchemy.orm import Session, joinedload

from headstart.contract.schema import Team as Track
from headstart.portal.documents import Documents
from headstart.portal.queue import QUEUE_ORDER, WAITING
from headstart.portal.tables import SCORE_NAMES, SubmissionRow

# Scores that differ by less are equal: the mean over the same models in another order may differ in the last bit.
DECIMALS = 9
MEANS = ("mean_cka_biased", "mean_cka_debiased", "mean_cka_calibrated")
PUBLIC_NAMES = ("contract_version", "team", "n_models", "n_stimuli", "pairwise", *MEANS)
Entry = dict[str, Any]


def read_records(session: Session, bases: Mapping[Track, str], *conditions: ColumnElement[bool]) -> list[Entry]:
    """Return the submissions that fulfil conditions as their teams may read them, the latest first.

    Args:
        session: Session of the portal's database.
        bases: What scores are computed from at present, by team of the contract.
        conditions: The conditions.
    """
    query = select(SubmissionRow).where(*conditions).order_by(SubmissionRow.id.desc())
    rows = session.scalars(query.options(joinedload(SubmissionRow.team)))
    waiting = select(SubmissionRow.id).where(SubmissionRow.state == "queue").order_by(*QUEUE_ORDER)
    places = {number: place for place, number in enumerate(session.scalars(waiting), 1)}
    return [
        {
            "id": row.id,
            "participant": row.team.name,
            "team": row.track,
            "received": row.received,
            "sha256": row.sha256,
            "hidden": row.hidden,
            "state": row.state,
            "held_back": row.score is not None and row.basis != bases[row.track],
            "place_in_queue": places.get(row.id),
            "note": row.note,
            **{name: None if row.state == "refused" else getattr(row, name) for name in SCORE_NAMES},
            "ended": row.ended,
        }
        for row in rows
    ]


def find_public_score(session: Session, number: int) -> Entry:
    """Return the public part of a submission's `score.json`; empty without a score.

    Its digests would reveal changes of documents, its timings the work done.
    """
    document = json.loads(session.scalar(select(SubmissionRow.document).where(SubmissionRow.id == number)) or "{}")
    return {name: document[name] for name in PUBLIC_NAMES if name in document}


def find_held_back(session: Session, bases: Mapping[Track, str]) -> list[int]:
    """Return the numbers of submissions whose score is of other documents or rules, and that are not being scored."""
    others = [and_(SubmissionRow.track == track, SubmissionRow.basis != basis) for track, basis in bases.items()]
    ended = (SubmissionRow.score.is_not(None), SubmissionRow.state.not_in([*WAITING, "refused"]))
    return list(session.scalars(select(SubmissionRow.id).where(or_(*others), *ended).order_by(SubmissionRow.id)))


@dataclass(frozen=True)
class Board:
    """A leaderboard.

    Attributes:
        standings: Its lines, the best rank first: the best submission of each participant, with its scores, its
            held-out score once that may be shown, and the number of the participant's scored submissions.
        has_held_out: Whether held-out scores are shown, and decide the order.
        held_back: Number of submissions that are not in it, because they were scored with other documents or rules.
    """

    standings: list[Entry]
    has_held_out: bool
    held_back: int


def rank_teams(session: Session, documents: Documents, track: Track, now: datetime) -> Board:
    """Rank participants by scores of the same documents and rules.

    Public scores alone choose the submission that stands: no participant could choose by a hidden score. After the
    deadline, held-out scores are shown and decide the order.

    Args:
        session: Session of the portal's database.
        documents: The documents of the challenge.
        track: Team of the contract.
        now: The time.
    """
    has_held_out = documents.challenge.is_over(now) and track in documents.held_out
    shown = (SubmissionRow.track == track, SubmissionRow.state != "refused", SubmissionRow.hidden.is_(False))
    query = select(SubmissionRow).where(*shown, SubmissionRow.score.is_not(None))
    rows = session.scalars(query.order_by(SubmissionRow.received, SubmissionRow.id)).all()
    current = [row for row in rows if row.basis == documents.bases[track]]

    by_team: dict[int, list[SubmissionRow]] = {}
    for row in current:
        by_team.setdefault(row.team_id, []).append(row)
    lines: list[Entry] = []
    for submitted in by_team.values():
        # Of equal scores, the first is the earliest.
        best = max(submitted, key=lambda row: round(row.score or 0, DECIMALS))
        lines.append(
            {
                "participant": best.team.name,
                "submission": best.id,
                **{name: getattr(best, name) for name in SCORE_NAMES},
                "held_out_score": best.held_out_score if has_held_out else None,
                "received": best.received,
                "submissions": len(submitted),
            }
        )

    decisive = "held_out_score" if has_held_out else "score"
    lines.sort(key=lambda line: (-round(line[decisive], DECIMALS), line["received"], line["submission"]))
    standings = [{"rank": rank, **line} for rank, line in enumerate(lines, 1)]
    return Board(standings, has_held_out, len(rows) - len(current))
