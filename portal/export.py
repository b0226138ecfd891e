"""The results of a challenge as files: leaderboards, submissions, the log."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, undefer

from headstart.contract.schema import Team as Track
from headstart.contract.submissions import KEYS
from headstart.output.files import output_folder, write_texts
from headstart.output.markup import csv_text, escape_cell
from headstart.portal.database import Database
from headstart.portal.documents import Documents
from headstart.portal.log import event_as_json
from headstart.portal.submissions import rank_teams, submission_as_json
from headstart.portal.tables import SCORE_NAMES, EventRow, ScoringRow, SubmissionRow, TeamRow


def export(database: Database, documents: Documents, now: datetime, folder: Path) -> list[Path]:
    """Write the organisers' files.

    Args:
        database: The portal's database.
        documents: The documents of the challenge.
        now: The time; after the deadline, held-out scores are shown and decide the order.
        folder: Folder for leaderboard_blue.csv and leaderboard_red.csv, as they are shown; submissions.jsonl, every
            submission with its document and its scorings, also held-out ones; and log.jsonl, the whole log. Existing
            files of these names are replaced.

    Returns:
        The files.

    Raises:
        UserError: The folder cannot be written.
    """
    target = output_folder("folder", folder)
    with database.reading() as session:
        texts = {f"leaderboard_{track}.csv": _board(session, documents, track, now) for track in KEYS}
        texts["submissions.jsonl"] = "".join(_submissions(session))
        events = session.scalars(select(EventRow).order_by(EventRow.id))
        texts["log.jsonl"] = "".join(_line({**event_as_json(event), "public": event.public}) for event in events)

    paths = write_texts(target, texts)
    for path in paths:
        # They hold documents and held-out scores.
        path.chmod(0o600)
    return paths


def whole_submission(session: Session, submission: SubmissionRow, team: str) -> dict[str, Any]:
    """Return a submission with its document and its scorings, as organisers may read it."""
    scorings = select(ScoringRow).where(ScoringRow.submission_id == submission.id).options(undefer(ScoringRow.document))
    return {
        **submission_as_json(submission, team),
        "bytes": submission.size,
        # Of one that was refused on arrival, the document is not kept.
        "document": None if submission.content is None else submission.content.decode(errors="replace"),
        "scorings": [_scoring(each) for each in session.scalars(scorings.order_by(ScoringRow.id))],
    }


def _board(session: Session, documents: Documents, track: Track, now: datetime) -> str:
    board = rank_teams(session, documents, track, now)
    held_out = ["held_out"] if board.has_held_out else []
    names = ["rank", "team", "submission_id", *SCORE_NAMES, *held_out, "received", "submissions"]
    lines = [{**vars(each), **vars(each.scores), "team": escape_cell(each.team)} for each in board.standings]
    return csv_text(names, [[line[name] for name in names] for line in lines])


def _submissions(session: Session) -> Iterator[str]:
    query = (
        select(SubmissionRow, TeamRow.name)
        .join(TeamRow, TeamRow.id == SubmissionRow.team_id)
        .options(undefer(SubmissionRow.content))
        .order_by(SubmissionRow.id)
    )
    for submission, team in session.execute(query).yield_per(100):
        yield _line(whole_submission(session, submission, team))


def _scoring(row: ScoringRow) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "state": row.state,
        "basis": row.basis,
        "attempts": row.attempt,
        "ended": row.ended and row.ended.isoformat(),
        "error": row.error,
        "score": row.scores.score,
        "result": None if row.document is None else json.loads(row.document),
    }


def _line(record: dict[str, Any]) -> str:
    return f"{json.dumps(record)}\n"
