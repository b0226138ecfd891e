"""What organisers do from the command line: `headstart portal admin teams add NAME`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jsonargparse import Namespace
from jsonargparse.typing import PositiveInt

from headstart.contract.challenge import challenge_path, read_challenge
from headstart.contract.submissions import KEYS
from headstart.output.errors import UserError
from headstart.output.parser import OneLineErrorParser, one_line_errors
from headstart.output.printable import print_written, printable, say
from headstart.output.tables import print_table
from headstart.portal.accounts import add_team, list_teams, renew_token, revoke_token
from headstart.portal.command_line import make_settings, settings_parser, underscored
from headstart.portal.database import AWAY, Database
from headstart.portal.export import export
from headstart.portal.intake import freeze, thaw
from headstart.portal.rescoring import find_failed, find_scored, score_again
from headstart.portal.settings import OWNER_ALONE, Settings
from headstart.portal.supervision import back_up, count_scorings, read_whole_log

Command = Callable[[Settings, Database, Namespace], None]


def _add(settings: Settings, database: Database, given: Namespace) -> None:
    token = add_team(database, given.name)
    say(f"{given.name} has the token {token}, which is not shown again.")


def _renew(settings: Settings, database: Database, given: Namespace) -> None:
    token = renew_token(database, given.name)
    say(f"{given.name} has the token {token}, which is not shown again; the one before is not valid any more.")


def _revoke(settings: Settings, database: Database, given: Namespace) -> None:
    revoke_token(database, given.name)
    say(f"{given.name} can hand in nothing more; its submissions and scores stay.")


def _list(settings: Settings, database: Database, given: Namespace) -> None:
    rows = [["team", "added", "token"]]
    for team in list_teams(database):
        revoked = "valid" if team.revoked is None else f"revoked {team.revoked:%Y-%m-%d %H:%M}"
        rows.append([printable(team.name), f"{team.added:%Y-%m-%d %H:%M}", revoked])
    print_table("Teams (UTC)", rows)


def _rescore(settings: Settings, database: Database, given: Namespace) -> None:
    asked = [bool(given.numbers), given.failed, given.scored]
    if sum(asked) != 1:
        raise UserError("rescore: name submissions, or give one of --failed and --scored")
    chosen = find_failed(database) if given.failed else find_scored(database) if given.scored else given.numbers
    held_out = {track for track in KEYS if settings.has_held_out_score(track)}
    count = score_again(database, chosen, held_out)
    are = "submission is" if count == 1 else "submissions are"
    say(f"{count} {are} in the queue again; the scores that are there stand until others are.")


def _export(settings: Settings, database: Database, given: Namespace) -> None:
    challenge = read_challenge(challenge_path(settings.challenge))
    over = challenge.is_over(datetime.now(UTC))
    held_out = {track for track in KEYS if over and settings.has_held_out_score(track)}
    print_written(export(database, challenge, held_out, Path(given.folder)))


def _freeze(settings: Settings, database: Database, given: Namespace) -> None:
    freeze(database)
    say("Nothing more is taken in; what is in the queue is scored.")


def _thaw(settings: Settings, database: Database, given: Namespace) -> None:
    thaw(database)
    say("Submissions are taken in.")


def _back_up(settings: Settings, database: Database, given: Namespace) -> None:
    print_written([back_up(database, Path(given.file))])


def _status(settings: Settings, database: Database, given: Namespace) -> None:
    rows = [["score", "state", "submissions"], *([kind, state, str(n)] for kind, state, n in count_scorings(database))]
    print_table("Scorings", rows)


def _log(settings: Settings, database: Database, given: Namespace) -> None:
    for event in read_whole_log(database, given.lines):
        say(f"{event.at:%Y-%m-%d %H:%M:%S} {event.text}")


# What is done, in a sentence, by whom, and what is asked for: names of arguments with what argparse is told of them.
COMMANDS: dict[str, tuple[str, Command, dict[str, dict[str, Any]]]] = {
    "rescore": (
        "Score submissions again.",
        _rescore,
        {
            "numbers": {"type": int, "nargs": "*", "help": "Numbers of submissions."},
            "--failed": {"action": "store_true", "help": "All of which a score failed, the held-out one too."},
            "--scored": {"action": "store_true", "help": "All that are scored."},
        },
    ),
    "export": (
        "Write leaderboards, submissions with their scores, and the log.",
        _export,
        {"folder": {"type": str, "help": "Folder to write to."}},
    ),
    "freeze": ("Take in no submissions until `thaw`.", _freeze, {}),
    "thaw": ("Take in submissions again.", _thaw, {}),
    "backup": (
        "Copy an SQLite database while it is in use.",
        _back_up,
        {"file": {"type": str, "help": "File to write."}},
    ),
    "status": ("Count scorings by state, held-out ones too.", _status, {}),
    "log": (
        "Print the log with what only organisers see: what was refused and why, what failed and why.",
        _log,
        {"--lines": {"type": PositiveInt, "default": 50, "help": "How many lines, the latest."}},
    ),
}
TEAM = {"name": {"type": str, "help": "Name of the team."}}
OF_TEAMS: dict[str, tuple[str, Command, dict[str, dict[str, Any]]]] = {
    "add": ("Add a team and print its token.", _add, TEAM),
    "renew": ("Give a team another token.", _renew, TEAM),
    "revoke": ("End a team's token.", _revoke, TEAM),
    "list": ("Print all teams.", _list, {}),
}


def main(args: Sequence[str] | None = None) -> None:
    """Run one of the organiser's commands.

    Args:
        args: Settings, the command and its arguments; those of the process by default.
    """
    parser = settings_parser("What organisers of a challenge do.")
    commands = parser.add_subcommands(dest="command", help="What is done:")
    of_teams = OneLineErrorParser(description="Add, list and revoke teams.")
    commands.add_subcommand("teams", of_teams, help="Add, list and revoke teams.")
    _add_commands(of_teams.add_subcommands(dest="what", help="What is done:"), OF_TEAMS)
    _add_commands(commands, COMMANDS)
    with one_line_errors():
        parsed = parser.parse_args(underscored(sys.argv[1:] if args is None else args))
        settings = make_settings(parser.instantiate(parsed))
        given = parsed[parsed.command]
        _, command, _ = OF_TEAMS[given.what] if parsed.command == "teams" else COMMANDS[parsed.command]
        _run(command, settings, given[given.what] if parsed.command == "teams" else given)


def _add_commands(to: Any, commands: dict[str, tuple[str, Command, dict[str, dict[str, Any]]]]) -> None:  # noqa: ANN401 - jsonargparse's
    for name, (what, _, arguments) in commands.items():
        parser = OneLineErrorParser(description=what)
        for argument, options in arguments.items():
            parser.add_argument(argument, **options)
        to.add_subcommand(name, parser, help=what)


def _run(command: Command, settings: Settings, given: Namespace) -> None:
    database = Database(settings.database_url)
    try:
        settings.folder.mkdir(OWNER_ALONE, parents=True, exist_ok=True)
        database.create_tables()
        command(settings, database, given)
    except AWAY as error:
        raise UserError(f"database: cannot be used ({str(error).splitlines()[0]})") from error
    except OSError as error:
        raise UserError(f"data: {settings.data!r} cannot be written ({error.strerror})") from error
    finally:
        database.close()
