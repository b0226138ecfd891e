"""The organisers' commands, such as `headstart portal admin teams add NAME`, and the files that `export` writes."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jsonargparse import Namespace
from sqlalchemy import select
from sqlalchemy.orm import Session, undefer

from headstart.contract.schema import Team as Track
from headstart.contract.submissions import KEYS
from headstart.output.errors import UserError
from headstart.output.files import output_folder, write_texts
from headstart.output.markup import csv_text, escape_cell
from headstart.output.parser import OneLineErrorParser, one_line_errors
from headstart.output.printable import print_written, printable, say
from headstart.output.tables import format_number, print_table
from headstart.portal import teams
from headstart.portal.database import UNAVAILABLE, Database, explain, make_private_folder
from headstart.portal.documents import Documents, find_held_back, read_bases, read_documents
from headstart.portal.intake import find_submission, hide, score_again, set_closed
from headstart.portal.settings import Settings, make_settings, settings_parser
from headstart.portal.submissions import PAGE_LENGTH, rank_teams, read_records, submission_as_json
from headstart.portal.tables import SCORE_NAMES, EventRow, ScoringRow, SubmissionRow, TeamRow, event_as_json

GROUPS = {"teams": "Add, list, revoke and remove teams.", "submissions": "List, show, rescore and hide submissions."}
_NAME = {"name": {"type": str, "help": "Name of the team."}}
_NUMBER = {"number": {"type": int, "help": "Number of the submission."}}


@dataclass(frozen=True)
class Command:
    """A command.

    Attributes:
        run: Does it, and returns a sentence about what was done. Its docstring is the command's help.
        arguments: argparse's options by argument; a name that begins with `--` is an option.
    """

    run: Callable[[Settings, Database, Namespace], str]
    arguments: dict[str, dict[str, Any]] = field(default_factory=dict)


def _add_team(settings: Settings, database: Database, args: Namespace) -> str:
    """Add a team, or let a revoked one in again, and print its token."""
    with database.writing() as session:
        token = teams.add_team(session, args.name)
    return f"{args.name} has the token {token}, which is not shown again."


def _list_teams(settings: Settings, database: Database, args: Namespace) -> str:
    """List all teams."""
    rows = [["team", "added (UTC)", "state", "submissions"]]
    with database.reading() as session:
        for team, count in teams.list_teams(session):
            state = "takes part" if team.revoked is None else "revoked"
            rows.append([printable(team.name), f"{team.added:%Y-%m-%d %H:%M}", state, str(count)])
    print_table("Teams", rows)
    return ""


def _revoke_team(settings: Settings, database: Database, args: Namespace) -> str:
    """Revoke a team's token; its submissions and scores stay."""
    with database.writing() as session:
        teams.revoke_team(session, args.name)
    return f"{args.name} can no longer submit. `teams add` prints a new token for it."


def _remove_team(settings: Settings, database: Database, args: Namespace) -> str:
    """Delete a team with all of its submissions and scores."""
    with database.writing() as session:
        count = teams.remove_team(session, args.name)
    return f"{args.name} is gone, with its submissions: {count}."


def _list_submissions(settings: Settings, database: Database, args: Namespace) -> str:
    """List the latest 100 submissions of all teams, with errors of scorings."""
    with database.reading() as session:
        records = read_records(session)
        failed = select(ScoringRow).where(ScoringRow.error != "").order_by(ScoringRow.id)
        numbers = [record.submission.id for record in records]
        errors = session.scalars(failed.where(ScoringRow.submission_id.in_(numbers))).all()

    rows = [["number", "participant", "team", "received (UTC)", "state", "score", ""]]
    for record in records:
        row, score = record.submission, format_number(record.scoring.scores.score, ".6f")
        remark = "hidden" if row.hidden else "held back" if record.is_held_back else ""
        cells = [str(row.id), printable(record.team), row.track, f"{row.received:%Y-%m-%d %H:%M}"]
        rows.append([*cells, record.state, score, remark])
    print_table("Submissions", rows)
    for scoring in errors:
        say(f"{scoring.submission_id}, {scoring.kind} score: {printable(scoring.error)}")
    return "`export` writes all of them." if len(records) == PAGE_LENGTH else ""


def _show_submission(settings: Settings, database: Database, args: Namespace) -> str:
    """Print a submission with its document, its problems, scores and errors as JSON."""
    with database.reading() as session:
        submission = find_submission(session, args.number)
        team = session.get_one(TeamRow, submission.team_id)
        text = json.dumps(whole_submission(session, submission, team.name), indent=1)
    for line in text.splitlines():
        say(line)
    return ""


def _rescore(settings: Settings, database: Database, args: Namespace) -> str:
    """Score submissions again."""
    if sum([bool(args.numbers), args.failed, args.held_back]) != 1:
        raise UserError("numbers: give numbers of submissions, or one of --failed and --held_back")
    documents = read_documents(settings)
    with database.writing() as session:
        numbers: Sequence[int] = args.numbers
        if args.failed:
            failed = select(SubmissionRow.id).join(ScoringRow, ScoringRow.submission_id == SubmissionRow.id)
            numbers = session.scalars(failed.where(ScoringRow.state == "failed")).all()
        elif args.held_back:
            numbers = find_held_back(session, read_bases(session))
        count = score_again(session, numbers, documents)
    return f"Submissions in the queue again: {count}. A score counts until there is a new one."


def _hide(settings: Settings, database: Database, args: Namespace) -> str:
    """Remove a submission from the leaderboard."""
    with database.writing() as session:
        hide(session, args.number, not args.undo)
    return f"Submission {args.number} is {'shown again' if args.undo else 'on no leaderboard; --undo shows it again'}."


def _export(settings: Settings, database: Database, args: Namespace) -> str:
    """Write leaderboards, submissions with their scores, and the log."""
    print_written(export(database, read_documents(settings), datetime.now(UTC), Path(args.folder)))
    with database.reading() as session:
        held_back = len(find_held_back(session, read_bases(session)))
    return f"Scored by other documents or rules, and on no leaderboard: {held_back}." if held_back else ""


def _close(settings: Settings, database: Database, args: Namespace) -> str:
    """Take no submissions until `open`; those in the queue are still scored."""
    with database.writing() as session:
        set_closed(session, True)
    return "Submissions are closed. Those in the queue are still scored."


def _open(settings: Settings, database: Database, args: Namespace) -> str:
    """Take submissions again."""
    with database.writing() as session:
        set_closed(session, False)
    return "Submissions are open."


def _switch(text: str) -> dict[str, str]:
    return {"action": "store_true", "help": text}


# By the words of a command. Commands of two words are grouped by the first.
COMMANDS = {
    "teams add": Command(_add_team, _NAME),
    "teams list": Command(_list_teams),
    "teams revoke": Command(_revoke_team, _NAME),
    "teams remove": Command(_remove_team, _NAME),
    "submissions list": Command(_list_submissions),
    "submissions show": Command(_show_submission, _NUMBER),
    "submissions rescore": Command(
        _rescore,
        {
            "numbers": {"type": int, "nargs": "*", "help": "Numbers of submissions."},
            "--failed": _switch("All submissions with a failed score, including held-out scores."),
            "--held_back": _switch("All submissions that were scored with other documents or rules."),
        },
    ),
    "submissions hide": Command(_hide, {**_NUMBER, "--undo": _switch("Show it on the leaderboard again.")}),
    "export": Command(_export, {"folder": {"type": str, "help": "Folder to write to."}}),
    "close": Command(_close),
    "open": Command(_open),
}


def main(args: Sequence[str] | None = None) -> None:
    """Run one of the organiser's commands.

    Args:
        args: Settings, the command and its arguments; those of the process by default.
    """
    parser = settings_parser("Run the challenge of a portal: teams, submissions, and their export.")
    commands = parser.add_subcommands(dest="command", help="Commands:")
    groups = {}
    for name, text in GROUPS.items():
        group = OneLineErrorParser(description=text)
        commands.add_subcommand(name, group, help=text)
        groups[name] = group.add_subcommands(dest="action", help="Commands:")
    for words, command in COMMANDS.items():
        subparser = OneLineErrorParser(description=command.run.__doc__)
        for argument, options in command.arguments.items():
            subparser.add_argument(argument, **options)
        first, _, rest = words.partition(" ")
        groups.get(first, commands).add_subcommand(rest or first, subparser, help=command.run.__doc__)

    with one_line_errors():
        parsed = parser.parse_args(args)
        settings = make_settings(parser.instantiate(parsed))
        words, values = parsed.command, parsed[parsed.command]
        if words in groups:
            words, values = f"{words} {values.action}", values[values.action]
        _run(words, settings, values)


def _run(words: str, settings: Settings, args: Namespace) -> None:
    database = Database(settings.database_url)
    try:
        make_private_folder(settings.folder)
        database.create_tables()
        if message := COMMANDS[words].run(settings, database, args):
            say(message)
    except UNAVAILABLE as error:
        raise explain(error) from error
    except OSError as error:
        raise UserError(f"data: {settings.data!r} cannot be written ({error.strerror}); choose another") from error
    finally:
        database.close()


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
