"""The organisers' commands, such as `headstart portal admin teams add NAME`, and the files that `export` writes.

A command is a method: its arguments are those of the command line, its docstring is the help, and the sentence that it
returns is printed.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session, undefer

from headstart.contract.submissions import KEYS, SCORE_NAMES
from headstart.output.errors import UserError
from headstart.output.files import output_folder, write_texts
from headstart.output.markup import csv_text, escape_cell
from headstart.output.parser import OneLineErrorParser, one_line_errors
from headstart.output.printable import print_written, printable, say
from headstart.output.tables import format_number, print_table
from headstart.portal.database import UNAVAILABLE, Database, explain, make_private_folder
from headstart.portal.queue import CLOSED, find_submission, score_again
from headstart.portal.settings import Settings, make_settings, settings_parser
from headstart.portal.submissions import PAGE_LENGTH, WITH_TEAM, find_held_back, rank_teams, read_records
from headstart.portal.tables import EventRow, FactRow, SubmissionRow, TeamRow, event_as_json, log_event
from headstart.portal.teams import add_team, find_team

BOARD_NAMES = ("rank", "participant", "submission", *SCORE_NAMES, "received", "submissions")
ABOUT_DOCUMENT = ("id", "track", "received", "size", "sha256", "hidden", "problems")
ABOUT_SCORE = ("state", "basis", "attempt", "ended", "note", "error")
SUBMISSION_NAMES = (*ABOUT_DOCUMENT, *ABOUT_SCORE, *SCORE_NAMES)


class Organiser:
    """The commands: the words of one are the name of its method.

    Args:
        session: Session of the portal's database; what a command changes is committed when it has ended.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def teams_add(self, name: str) -> str:
        """Add a team, or let a revoked one in again, and print its token.

        Args:
            name: Name of the team.
        """
        return f"{name} has the token {add_team(self._session, name)}, which is not shown again."

    def teams_list(self) -> str:
        """List all teams."""
        rows = [["team", "added (UTC)", "state", "submissions"]]
        valid = (SubmissionRow.team_id == TeamRow.id) & SubmissionRow.problems.is_(None)
        query = select(TeamRow, func.count(SubmissionRow.id)).outerjoin(SubmissionRow, valid)
        for team, count in self._session.execute(query.group_by(TeamRow.id).order_by(TeamRow.canonical)):
            state = "takes part" if team.revoked is None else "revoked"
            rows.append([printable(team.name), f"{team.added:%Y-%m-%d %H:%M}", state, str(count)])
        print_table("Teams", rows)
        return ""

    def teams_revoke(self, name: str) -> str:
        """Revoke a team's token; its submissions and scores stay.

        Args:
            name: Name of the team.
        """
        team = find_team(self._session, name)
        team.revoked = team.revoked or datetime.now(UTC)
        log_event(self._session, "team revoked", f"The team {team.name} may submit nothing more.", team)
        return f"{name} can no longer submit. `teams add` prints a new token for it."

    def teams_remove(self, name: str) -> str:
        """Delete a team with all of its submissions and scores.

        Args:
            name: Name of the team.
        """
        team = find_team(self._session, name)
        of_team = SubmissionRow.team_id == team.id
        # The lock comes first: a process that ends a scoring at this moment also writes a line of the log.
        count = len(self._session.scalars(select(SubmissionRow.id).where(of_team).with_for_update()).all())
        for row, condition in (
            (EventRow, EventRow.team_id == team.id),
            (SubmissionRow, of_team),
            (TeamRow, TeamRow.id == team.id),
        ):
            self._session.execute(delete(row).where(condition))
        log_event(self._session, "team removed", f"The team {team.name} was removed with {count} submissions.")
        return f"{name} is gone, with its submissions: {count}."

    def submissions_list(self) -> str:
        """List the latest 100 submissions of all teams, with errors of scorings."""
        rows = [["number", "participant", "team", "received (UTC)", "state", "score", ""]]
        records = read_records(self._session)
        for record in records:
            about = [str(record["id"]), printable(record["participant"]), record["team"]]
            remark = "hidden" if record["hidden"] else "held back" if record["held_back"] else ""
            score = format_number(record["score"], ".6f")
            rows.append([*about, f"{record['received']:%Y-%m-%d %H:%M}", record["state"], score, remark])
        print_table("Submissions", rows)

        failed = select(SubmissionRow).where(SubmissionRow.error != "").order_by(SubmissionRow.id.desc())
        for submission in self._session.scalars(failed.limit(PAGE_LENGTH)):
            say(f"{submission.id}: {printable(submission.error)}")
        return "`export` writes all of them." if len(records) == PAGE_LENGTH else ""

    def submissions_show(self, number: int) -> str:
        """Print a submission with its document, its problems, scores and errors as JSON.

        Args:
            number: Number of the submission.
        """
        find_submission(self._session, number)
        (whole,) = whole_submissions(self._session, number)
        for line in json.dumps(whole, indent=1, default=datetime.isoformat).splitlines():
            say(line)
        return ""

    def submissions_rescore(self, which: int | Literal["failed", "held_back"]) -> str:
        """Score submissions again.

        Args:
            which: Number of a submission; `failed`, all whose scoring failed; or `held_back`, all that were scored with
                other documents or rules.
        """
        if which == "failed":
            numbers = list(self._session.scalars(select(SubmissionRow.id).where(SubmissionRow.state == "failed")))
        else:
            numbers = find_held_back(self._session) if which == "held_back" else [which]
        count = score_again(self._session, numbers)
        return f"Submissions in the queue again: {count}. A score counts until there is a new one."

    def submissions_hide(self, number: int) -> str:
        """Remove a submission from the leaderboard.

        Args:
            number: Number of the submission.
        """
        self._hide(number, True)
        return f"Submission {number} is on no leaderboard; `submissions unhide` shows it again."

    def submissions_unhide(self, number: int) -> str:
        """Show a hidden submission on the leaderboard again.

        Args:
            number: Number of the submission.
        """
        self._hide(number, False)
        return f"Submission {number} is shown again."

    def _hide(self, number: int, hidden: bool) -> None:
        submission = find_submission(self._session, number)
        submission.hidden = hidden
        text = f"{'hidden' if hidden else 'shown again'} by the organisers."
        log_event(self._session, "hidden", text, submission, public=True)

    def export(self, folder: str) -> str:
        """Write leaderboards as they are shown, all submissions with documents and scores, and the log.

        Args:
            folder: Folder to write to. Existing files of the same names are replaced.
        """
        target = output_folder("folder", Path(folder))
        texts = {}
        for track in KEYS:
            lines = rank_teams(self._session, track).standings
            cells = [[escape_cell(line[name]) for name in BOARD_NAMES] for line in lines]
            texts[f"leaderboard_{track}.csv"] = csv_text(BOARD_NAMES, cells)
        texts["submissions.jsonl"] = _lines(whole_submissions(self._session))
        events = self._session.scalars(select(EventRow).order_by(EventRow.id))
        texts["log.jsonl"] = _lines([{**event_as_json(event), "public": event.public} for event in events])

        paths = write_texts(target, texts)
        for path in paths:
            # They hold the documents of all teams.
            path.chmod(0o600)
        print_written(paths)
        held_back = len(find_held_back(self._session))
        return f"Scored by other documents or rules, and on no leaderboard: {held_back}." if held_back else ""

    def close(self) -> str:
        """Refuse submissions until `open`; those in the queue are still scored."""
        return f"{self._set_closed(True)} Those in the queue are still scored."

    def open(self) -> str:
        """Accept submissions again."""
        return self._set_closed(False)

    def _set_closed(self, closed: bool) -> str:
        fact, word = self._session.get(FactRow, CLOSED), "closed" if closed else "open"
        if closed != (fact is not None):
            if fact is None:
                self._session.add(FactRow(name=CLOSED, value=datetime.now(UTC).isoformat()))
            else:
                self._session.delete(fact)
            log_event(self._session, word, f"Submissions are {word}.", public=True)
        return f"Submissions are {word}."


# The commands by their words: the name of a method is `GROUP_NAME`, or the only word.
COMMANDS = {tuple(name.rsplit("_", 1)): name for name in vars(Organiser) if not name.startswith("_")}
# Those that change nothing keep nobody from submitting meanwhile.
READING = {"teams_list", "submissions_list", "submissions_show", "export"}


def main(args: Sequence[str] | None = None) -> None:
    """Run one of the organiser's commands.

    Args:
        args: Settings, the command and its arguments; those of the process by default.
    """
    parser = settings_parser("Run the challenge of a portal: teams, submissions, and their export.")
    groups = {"": parser.add_subcommands(dest="command", help="Commands:")}
    for words, method in COMMANDS.items():
        group = words[0] if words[1:] else ""
        if group not in groups:
            of_group = OneLineErrorParser(description=f"Commands about {group}.")
            groups[""].add_subcommand(group, of_group, help=f"Commands about {group}.")
            groups[group] = of_group.add_subcommands(dest="action", help="Commands:")
        text = (getattr(Organiser, method).__doc__ or "").partition("\n")[0]
        command = OneLineErrorParser(description=text)
        command.add_method_arguments(Organiser, method, as_group=False, as_positional=True)
        groups[group].add_subcommand(words[-1], command, help=text)

    with one_line_errors():
        parsed = parser.parse_args(args)
        method, values = parsed.command, parsed[parsed.command]
        if method in groups:
            method, values = f"{method}_{values.action}", values[values.action]
        _run(method, make_settings(parser.instantiate(parsed)), values.as_dict() if values else {})


def _run(method: str, settings: Settings, values: dict[str, Any]) -> None:
    database = Database(settings.database_url)
    try:
        make_private_folder(settings.folder)
        database.create_tables()
        with database.reading() if method in READING else database.writing() as session:
            message = getattr(Organiser(session), method)(**values)
        if message:
            say(message)
    except UNAVAILABLE as error:
        raise explain(error) from error
    except OSError as error:
        raise UserError(f"data: {settings.data!r} cannot be written ({error.strerror}); choose another") from error
    finally:
        database.close()


def whole_submissions(session: Session, *numbers: int) -> list[dict[str, Any]]:
    """Return submissions with their documents and scores, as organisers may read them; without numbers, all."""
    query = select(SubmissionRow).where(SubmissionRow.id.in_(numbers)) if numbers else select(SubmissionRow)
    loaded = query.options(WITH_TEAM, undefer(SubmissionRow.content), undefer(SubmissionRow.document))
    return [
        {
            "participant": row.team.name,
            **{name: getattr(row, name) for name in SUBMISSION_NAMES},
            # Of one that was refused on arrival, the document is not kept.
            "document": None if row.content is None else row.content.decode(errors="replace"),
            "result": None if row.document is None else json.loads(row.document),
        }
        for row in session.scalars(loaded.order_by(SubmissionRow.id))
    ]


def _lines(records: Iterable[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(record, default=datetime.isoformat)}\n" for record in records)
