"""Submissions and the leaderboard, under the same names on pages, for programs and in files."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, func, literal, select
from sqlalchemy.orm import Session, aliased

from headstart.contract.schema import Track
from headstart.contract.submissions import SCORE_NAMES
from headstart.portal.documents import BASES, Documents, basis_key, read_bases
from headstart.portal.tables import QUEUE_ORDER, FactRow, ScoringRow, SubmissionRow, TeamRow, log_event

# A program may submit invalid documents all day, and their list must not slow the portal down.
PAGE_LENGTH = 100
# Scores that differ by less are equal: the mean over the same models in another order may differ in the last bit.
DECIMALS = 9
WAITING = ("queue", "running")
MEANS = ("mean_cka_biased", "mean_cka_debiased", "mean_cka_calibrated")
PUBLIC_NAMES = ("contract_version", "team", "n_models", "n_stimuli", "pairwise", *MEANS)
PUBLIC, HELD_OUT = aliased(ScoringRow), aliased(ScoringRow)
Entry = dict[str, Any]


def select_submissions(*conditions: ColumnElement[bool]) -> Select[*tuple[Any, ...]]:
    """Select submissions, each with its team's name, its public scoring and its held-out scoring, which may be None."""
    return (
        select(SubmissionRow, TeamRow.name, PUBLIC, HELD_OUT)
        .join(TeamRow, TeamRow.id == SubmissionRow.team_id)
        .outerjoin(PUBLIC, and_(PUBLIC.submission_id == SubmissionRow.id, PUBLIC.kind == "public"))
        .outerjoin(HELD_OUT, and_(HELD_OUT.submission_id == SubmissionRow.id, HELD_OUT.kind == "held_out"))
        .where(*conditions)
    )


def read_records(session: Session, *conditions: ColumnElement[bool]) -> list[Entry]:
    """Return the latest 100 submissions that fulfil conditions as their teams may read them, the latest first."""
    rows = session.execute(select_submissions(*conditions).order_by(SubmissionRow.id.desc()).limit(PAGE_LENGTH)).all()
    waiting = select(ScoringRow.submission_id).where(ScoringRow.state == "queue", ScoringRow.kind == "public")
    places = {number: place for place, number in enumerate(session.scalars(waiting.order_by(*QUEUE_ORDER)), 1)}
    bases = read_bases(session)
    return [_as_record(submission, team, public, places, bases) for submission, team, public, _ in rows]


def _as_record(
    submission: SubmissionRow, team: str, public: ScoringRow | None, places: dict[int, int], bases: Mapping[str, str]
) -> Entry:
    # One that was refused on arrival has no scoring.
    scoring = public or ScoringRow(state="refused", note="")
    is_refused = submission.problems is not None
    scores = {name: None if is_refused else getattr(scoring, name) for name in SCORE_NAMES}
    is_old = scores["score"] is not None and scoring.basis != bases.get(basis_key(submission.track, "public"))
    return {
        "id": submission.id,
        "participant": team,
        "team": submission.track,
        "received": submission.received,
        "sha256": submission.sha256,
        "hidden": submission.hidden,
        "problems": submission.problems or [],
        "state": "refused" if is_refused else scoring.state,
        "held_back": is_old,
        "place_in_queue": None if is_refused else places.get(submission.id),
        "note": scoring.note,
        **scores,
        "ended": scoring.ended,
    }


def find_public_score(session: Session, number: int) -> Entry:
    """Return the public part of a submission's `score.json`; empty without a score.

    Its digests would reveal changes of held-out documents, its timings the work done.
    """
    public = (ScoringRow.submission_id == number, ScoringRow.kind == "public")
    document = json.loads(session.scalar(select(ScoringRow.document).where(*public)) or "{}")
    return {name: document[name] for name in PUBLIC_NAMES if name in document}


def count_submissions(session: Session) -> dict[str, int]:
    """Count submissions by state."""
    public = (ScoringRow.submission_id == SubmissionRow.id) & (ScoringRow.kind == "public")
    state = case((SubmissionRow.problems.is_not(None), literal("refused")), else_=ScoringRow.state)
    query = select(state, func.count()).select_from(SubmissionRow).outerjoin(ScoringRow, public).group_by(state)
    return dict(session.execute(query).all())


def find_held_back(session: Session) -> list[int]:
    """Return the numbers of submissions whose score is of other documents or rules, or that lack a held-out score.

    A scoring that waits or runs will end by the documents of its time, and is left out.
    """
    bases = read_bases(session)
    rows = session.execute(select_submissions(SubmissionRow.problems.is_(None)).order_by(SubmissionRow.id))
    return [
        submission.id
        for submission, _, public, hidden in rows
        if _is_held_back(public, bases.get(basis_key(submission.track, "public")))
        or _is_held_back(hidden, bases.get(basis_key(submission.track, "held_out")))
    ]


def _is_held_back(scoring: ScoringRow | None, basis: str | None) -> bool:
    # Held-out documents may be named after it was submitted.
    if scoring is None or basis is None:
        return basis is not None
    return scoring.score is not None and scoring.state not in WAITING and scoring.basis != basis


def record_bases(session: Session, bases: Mapping[str, str]) -> int:
    """Record what scores are computed from at present, so that no process computes them from anything else.

    Returns:
        The number of submissions that must be scored again. A change is logged for everybody.
    """
    before = read_bases(session)
    session.merge(FactRow(name=BASES, value=json.dumps(bases)))
    held_back = len(find_held_back(session))
    if held_back and before != bases:
        message = f"Documents or rules have changed. Submissions that must be scored again: {held_back}."
        log_event(session, "documents changed", message, public=True)
    return held_back


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
    has_held_out = documents.challenge.is_over(now) and "held_out" in documents.kinds(track)
    basis, hidden_basis = (documents.bases.get(basis_key(track, kind)) for kind in ("public", "held_out"))
    shown = (SubmissionRow.track == track, SubmissionRow.problems.is_(None), SubmissionRow.hidden.is_(False))
    query = select_submissions(*shown, PUBLIC.score.is_not(None)).order_by(SubmissionRow.received, SubmissionRow.id)

    lines: dict[int, list[Entry]] = {}
    held_back = 0
    for submission, team, public, hidden in session.execute(query):
        has_hidden = has_held_out and hidden is not None and hidden.score is not None
        held_back += public.basis != basis or (has_hidden and hidden.basis != hidden_basis)
        if public.basis != basis:
            continue
        line = {
            "participant": team,
            "submission": submission.id,
            **{name: getattr(public, name) for name in SCORE_NAMES},
            "held_out_score": hidden.score if has_hidden and hidden.basis == hidden_basis else None,
            "received": submission.received,
        }
        lines.setdefault(submission.team_id, []).append(line)

    # Of equal scores, the first is the earliest.
    best = [
        {**max(of_team, key=lambda line: round(line["score"], DECIMALS)), "submissions": len(of_team)}
        for of_team in lines.values()
    ]

    def order(line: Entry) -> tuple[Any, ...]:
        # Participants whose held-out score is still missing come last, ordered by their public score.
        hidden = line["held_out_score"]
        is_missing = has_held_out and hidden is None
        score = line["score"] if hidden is None else hidden
        return is_missing, -round(score, DECIMALS), line["received"], line["submission"]

    standings = [{"rank": rank, **line} for rank, line in enumerate(sorted(best, key=order), 1)]
    return Board(standings, has_held_out, held_back)
