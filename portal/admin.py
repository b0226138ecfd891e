"""The organisers' commands, such as `headstart portal admin add-team NAME`, and the files that `export` writes.

A command is a method: its arguments are those of the command line, its docstring is the help, and the sentence that it
returns is printed.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload, undefer

from headstart.contract.submissions import KEYS
from headstart.output.errors import UserError
from headstart.output.files import output_folder, write_texts
from headstart.output.markup import csv_text, escape_cell
from headstart.output.parser import OneLineErrorParser, one_line_errors
from headstart.output.printable import print_written, printable, say
from headstart.output.tables import format_number, print_table
from headstart.portal import teams
from headstart.portal.database import UNAVAILABLE, Database, explain, make_private_folder
from headstart.portal.documents import read_documents
from headstart.portal.queue import find_submission, score_again
from headstart.portal.settings import Settings, make_settings, settings_parser
from headstart.portal.submissions import find_held_back, rank_teams, read_records
from headstart.portal.tables import SCORE_NAMES, SubmissionRow

BOARD_NAMES = ("rank", "participant", "submission", *SCORE_NAMES, "held_out_score", "received", "submissions")
SUBMISSION_NAMES = (
    *("id", "track", "received", "sha256", "hidden", "state", "ended", "note", "error", "basis"),
    *(*SCORE_NAMES, "held_out_score"),
)


class Organiser:
    """The commands, by the names of the methods.

    Args:
        settings: The portal's settings.
        database: The portal's database.
    """

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings = settings
        self._database = database

    def add_team(self, name: str) -> str:
        """Add a team, or let a revoked one in again, and print its token.

        Args:
            name: Name of the team.
        """
        with self._database.writing() as session:
            token = teams.add_team(session, name)
        return f"{name} has the token {token}, which is not shown again."

    def list_teams(self) -> str:
        """List all teams."""
        rows = [["team", "added (UTC)", "state", "submissions"]]
        with self._database.reading() as session:
            for team, count in teams.list_teams(session):
                state = "takes part" if team.revoked is None else "revoked"
                rows.append([printable(team.name), f"{team.added:%Y-%m-%d %H:%M}", state, str(count)])
        print_table("Teams", rows)
        return ""

    def revoke_team(self, name: str) -> str:
        """Revoke a team's token; its submissions and scores stay.

        Args:
            name: Name of the team.
        """
        with self._database.writing() as session:
            teams.revoke_team(session, name)
        return f"{name} can no longer submit. `add-team` prints a new token for it."

    def list_submissions(self) -> str:
        """List the submissions of all teams, with errors of scorings."""
        bases = read_documents(self._settings).bases
        with self._database.reading() as session:
            records = read_records(session, bases)
            failed = select(SubmissionRow).where(SubmissionRow.error != "").order_by(SubmissionRow.id.desc())
            errors = [f"{row.id}: {printable(row.error)}" for row in session.scalars(failed)]

        rows = [["number", "participant", "team", "received (UTC)", "state", "score", ""]]
        for each in records:
            remark = "hidden" if each["hidden"] else "held back" if each["held_back"] else ""
            received, score = f"{each['received']:%Y-%m-%d %H:%M}", format_number(each["score"], ".6f")
            name = printable(each["participant"])
            rows.append([str(each["id"]), name, each["team"], received, each["state"], score, remark])
        print_table("Submissions", rows)
        for error in errors:
            say(error)
        return ""

    def rescore(self, which: int | Literal["failed", "held_back"]) -> str:
        """Score submissions again.

        Args:
            which: Number of a submission; `failed`, all that could not be scored; or `held_back`, all that were scored
                with other documents or rules.
        """
        bases = read_documents(self._settings).bases
        with self._database.writing() as session:
            if which == "failed":
                numbers = list(session.scalars(select(SubmissionRow.id).where(SubmissionRow.state == "failed")))
            else:
                numbers = find_held_back(session, bases) if which == "held_back" else [which]
            score_again(session, numbers)
        return f"Submissions in the queue again: {len(numbers)}. A score counts until there is a new one."

    def hide(self, number: int) -> str:
        """Remove a submission from the leaderboard.

        Args:
            number: Number of the submission.
        """
        with self._database.writing() as session:
            find_submission(session, number).hidden = True
        return f"Submission {number} is on no leaderboard; `unhide` shows it again."

    def unhide(self, number: int) -> str:
        """Show a hidden submission on the leaderboard again.

        Args:
            number: Number of the submission.
        """
        with self._database.writing() as session:
            find_submission(session, number).hidden = False
        return f"Submission {number} is shown again."

    def export(self, folder: str) -> str:
        """Write leaderboards as they are shown, and all submissions with their documents and scores.

        Args:
            folder: Folder to write to. Existing files of the same names are replaced.
        """
        documents, target = read_documents(self._settings), output_folder("folder", Path(folder))
        texts = {}
        with self._database.reading() as session:
            for track in KEYS:
                standings = rank_teams(session, documents, track, datetime.now(UTC)).standings
                cells = [[escape_cell(line[name]) for name in BOARD_NAMES] for line in standings]
                texts[f"leaderboard_{track}.csv"] = csv_text(BOARD_NAMES, cells)
            lines = [json.dumps(each, default=datetime.isoformat) for each in whole_submissions(session)]
            texts["submissions.jsonl"] = "".join(f"{line}\n" for line in lines)
            held_back = len(find_held_back(session, documents.bases))

        paths = write_texts(target, texts)
        for path in paths:
            # They hold documents and held-out scores.
            path.chmod(0o600)
        print_written(paths)
        return f"Scored by other documents or rules, and on no leaderboard: {held_back}." if held_back else ""


def main(args: Sequence[str] | None = None) -> None:
    """Run one of the organiser's commands.

    Args:
        args: Settings, the command and its arguments; those of the process by default.
    """
    parser = settings_parser("Run the challenge of a portal: teams, submissions, and their export.")
    commands = parser.add_subcommands(dest="command", help="Commands:")
    for method in (name for name in vars(Organiser) if not name.startswith("_")):
        text = (getattr(Organiser, method).__doc__ or "").partition("\n")[0]
        command = OneLineErrorParser(description=text)
        command.add_method_arguments(Organiser, method, as_group=False, as_positional=True)
        commands.add_subcommand(method.replace("_", "-"), command, help=text)

    with one_line_errors():
        parsed = parser.parse_args(args)
        values = parsed[parsed.command]
        settings = make_settings(parser.instantiate(parsed))
        _run(parsed.command.replace("-", "_"), settings, values.as_dict() if values else {})


def _run(method: str, settings: Settings, values: dict[str, Any]) -> None:
    database = Database(settings.folder)
    try:
        make_private_folder(settings.folder)
        database.create_tables()
        if message := getattr(Organiser(settings, database), method)(**values):
            say(message)
    except UNAVAILABLE as error:
        raise explain(error) from error
    except OSError as error:
        raise UserError(f"data: {settings.data!r} cannot be written ({error.strerror}); choose another") from error
    finally:
        database.close()


def whole_submissions(session: Session) -> list[dict[str, Any]]:
    """Return all submissions with their documents and scores, as organisers may read them."""
    large = [undefer(SubmissionRow.content), undefer(SubmissionRow.document), undefer(SubmissionRow.held_out_document)]
    query = select(SubmissionRow).order_by(SubmissionRow.id).options(joinedload(SubmissionRow.team), *large)
    return [
        {
            "participant": row.team.name,
            **{name: getattr(row, name) for name in SUBMISSION_NAMES},
            "document": row.content.decode(errors="replace"),
            "results": [json.loads(each) for each in (row.document, row.held_out_document) if each is not None],
        }
        for row in session.scalars(query)
    ]
