"""What a challenge comes to, as files: leaderboards, submissions, the log."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, undefer

from headstart.contract.challenge import Challenge
from headstart.contract.schema import Team as Track
from headstart.contract.submissions import KEYS
from headstart.output.files import output_folder, write_texts
from headstart.output.markup import escape_cell
from headstart.portal.database import Database, EventRow, ScoringRow, SubmissionRow, TeamRow
from headstart.portal.leaderboard import Standing, rank_teams
from headstart.portal.published import publish_event


def export(database: Database, challenge: Challenge, held_out: Collection[str], folder: Path) -> list[Path]:
    """Write what organisers keep.

    Args:
        database: The portal's.
        challenge: The challenge.
        held_out: Teams of the contract whose held-out scores are shown by now, and decide the order.
        folder: Folder for leaderboard_blue.csv and leaderboard_red.csv, as they are shown; submissions.jsonl, every
            submission with its document and all of its scorings, held-out ones too; and log.jsonl, the whole log.
            Files of these names that are there are replaced.

    Returns:
        The files.

    Raises:
        UserError: The folder cannot be written.
    """
    target = output_folder("folder", folder)
    with database.reading() as session:
        texts = {f"leaderboard_{track}.csv": _board(session, challenge, track, track in held_out) for track in KEYS}
        texts["submissions.jsonl"] = "".join(_submissions(session))
        texts["log.jsonl"] = "".join(_log(session))
    return write_texts(target, texts)


def _board(session: Session, challenge: Challenge, track: Track, with_held_out: bool) -> str:
    names = [field.name for field in fields(Standing) if with_held_out or field.name != "held_out"]
    written = io.StringIO()
    writer = csv.DictWriter(written, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for each in rank_teams(session, challenge, track, with_held_out):
        writer.writerow({**asdict(each), "team": escape_cell(each.team)})
    return written.getvalue()


def _submissions(session: Session) -> Iterator[str]:
    query = (
        select(SubmissionRow, TeamRow.name)
        .join(TeamRow, TeamRow.id == SubmissionRow.team_id)
        .options(undefer(SubmissionRow.content), undefer(SubmissionRow.refused))
        .order_by(SubmissionRow.id)
    )
    for row, team in session.execute(query).yield_per(100):
        scorings = select(ScoringRow).where(ScoringRow.submission_id == row.id).options(undefer(ScoringRow.document))
        yield _line(
            {
                "id": row.id,
                "participant": team,
                "team": row.track,
                "received": row.received.isoformat(),
                "sha256": row.sha256,
                # What is no text was refused.
                "document": row.content.decode(errors="replace"),
                "problems": json.loads(row.refused or "[]"),
                "scorings": [_scoring(each) for each in session.scalars(scorings.order_by(ScoringRow.id))],
            }
        )


def _scoring(row: ScoringRow) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "round": row.round,
        "state": row.state,
        "attempts": row.attempt,
        "ended": None if row.ended is None else row.ended.isoformat(),
        "error": row.error,
        "score": row.score,
        "result": None if row.document is None else json.loads(row.document),
    }


def _log(session: Session) -> Iterator[str]:
    for event in session.scalars(select(EventRow).order_by(EventRow.id)):
        yield _line({**publish_event(event), "public": event.public})


def _line(record: dict[str, Any]) -> str:
    return f"{json.dumps(record)}\n"
