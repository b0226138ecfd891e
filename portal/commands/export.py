"""The results of a challenge as files: leaderboards, submissions, the log."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, undefer

from headstart.contract.schema import Team as Track
from headstart.contract.submissions import KEYS
from headstart.output.files import output_folder, write_texts
from headstart.output.markup import escape_cell
from headstart.portal.phases import Phase
from headstart.portal.records.database import Database
from headstart.portal.records.leaderboard import rank_teams
from headstart.portal.records.log import event_as_json
from headstart.portal.records.scores import SCORE_NAMES
from headstart.portal.records.submissions import submission_as_json
from headstart.portal.records.tables import EventRow, ScoringRow, SubmissionRow, TeamRow


def export(database: Database, phases: Sequence[Phase], now: datetime, folder: Path) -> list[Path]:
    """Write the organisers' files.

    Args:
        database: The portal's database.
        phases: The phases of the challenge.
        now: The time; after a phase's deadline, held-out scores are shown and decide the order.
        folder: Folder for leaderboard_blue.csv and leaderboard_red.csv, as they are shown, or where there are several
            phases leaderboard_PHASE_blue.csv and so on; submissions.jsonl, every
            submission with its document and all of its scorings, also held-out ones; and log.jsonl, the whole log.
            Existing files of these names are replaced.

    Returns:
        The files.

    Raises:
        UserError: The folder cannot be written.
    """
    target = output_folder("folder", folder)
    with database.reading() as session:
        texts = {
            f"leaderboard_{f'{phase.name}_' if len(phases) > 1 else ''}{track}.csv": _board(session, phase, track, now)
            for phase in phases
            for track in KEYS
        }
        texts["submissions.jsonl"] = "".join(_submissions(session))
        events = session.scalars(select(EventRow).order_by(EventRow.id))
        texts["log.jsonl"] = "".join(_line({**event_as_json(event), "public": event.public}) for event in events)
    return write_texts(target, texts)


def _board(session: Session, phase: Phase, track: Track, now: datetime) -> str:
    bases = phase.shown_bases(track, phase.challenge.is_over(now))
    held_out = ["held_out"] if "held_out" in bases else []
    names = ["rank", "team", "submission_id", *SCORE_NAMES, *held_out, "received", "submissions"]
    text = io.StringIO()
    writer = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    standings, _ = rank_teams(session, phase.challenge, track, bases)
    for each in standings:
        writer.writerow({**vars(each), **vars(each.scores), "team": escape_cell(each.team)})
    return text.getvalue()


def _submissions(session: Session) -> Iterator[str]:
    query = (
        select(SubmissionRow, TeamRow.name)
        .join(TeamRow, TeamRow.id == SubmissionRow.team_id)
        .options(undefer(SubmissionRow.content), undefer(SubmissionRow.refused))
        .order_by(SubmissionRow.id)
    )
    for row, team in session.execute(query).yield_per(100):
        scorings = select(ScoringRow).where(ScoringRow.submission_id == row.id).options(undefer(ScoringRow.document))

        submission = {
            **submission_as_json(row, team),
            "bytes": row.size,
            # Of one that was refused on arrival, the document is not kept.
            "document": None if row.content is None else row.content.decode(errors="replace"),
            "problems": json.loads(row.refused or "[]"),
            "scorings": [_scoring(each) for each in session.scalars(scorings.order_by(ScoringRow.id))],
        }
        yield _line(submission)


def _scoring(row: ScoringRow) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "round": row.round,
        "state": row.state,
        "basis": row.basis,
        "attempts": row.attempt,
        "ended": None if row.ended is None else row.ended.isoformat(),
        "error": row.error,
        "score": row.scores.score,
        "result": None if row.document is None else json.loads(row.document),
    }


def _line(record: dict[str, Any]) -> str:
    return f"{json.dumps(record)}\n"
