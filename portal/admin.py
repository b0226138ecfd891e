"""The organisers' commands, such as `headstart portal admin teams add NAME`."""

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
from headstart.portal.records.accounts import add_team, list_teams, renew_token, revoke_token
from headstart.portal.records.database import UNAVAILABLE, Database
from headstart.portal.records.export import export
from headstart.portal.records.log import read_whole_log
from headstart.portal.records.submissions import count_scorings, find_numbers
from headstart.portal.settings import OWNER_ONLY, Settings, make_settings, settings_parser
from headstart.portal.work.intake import freeze, score_again, thaw

Command = Callable[[Settings, Database, Namespace], None]
Arguments = dict[str, dict[str, Any]]


def _add(settings: Settings, database: Database, args: Namespace) -> None:
    """Add a team and print its token."""
    token = add_team(database, args.name)
    say(f"{args.name} has the token {token}, which is not shown again.")


def _renew(settings: Settings, database: Database, args: Namespace) -> None:
    """Replace the token of a team."""
    token = renew_token(database, args.name)
    say(f"{args.name} has the token {token}, which is not shown again; the one before is not valid any more.")


def _revoke(settings: Settings, database: Database, args: Namespace) -> None:
    """End a team's token."""
    revoke_token(database, args.name)
    say(f"{args.name} can submit nothing more; its submissions and scores stay.")


def _list(settings: Settings, database: Database, args: Namespace) -> None:
    """Print all teams."""
    rows = [["team", "added", "token"]]
    for team in list_teams(database):
        token = "valid" if team.revoked is None else f"revoked {team.revoked:%Y-%m-%d %H:%M}"
        rows.append([printable(team.name), f"{team.added:%Y-%m-%d %H:%M}", token])
    print_table("Teams (UTC)", rows)


def _rescore(settings: Settings, database: Database, args: Namespace) -> None:
    """Score submissions again."""
    if sum([bool(args.numbers), args.failed, args.scored]) != 1:
        raise UserError("rescore: name submissions, or give one of --failed and --scored")
    numbers = args.numbers
    if args.failed:
        numbers = find_numbers(database, "failed", "public", "held_out")
    elif args.scored:
        numbers = find_numbers(database, "scored", "public")

    held_out = {track for track in KEYS if settings.has_held_out_score(track)}
    count = score_again(database, numbers, held_out)
    are = "submission is" if count == 1 else "submissions are"
    say(f"{count} {are} in the queue again; the scores that are there stand until others are.")


def _export(settings: Settings, database: Database, args: Namespace) -> None:
    """Write leaderboards, submissions with their scores, and the log."""
    challenge = read_challenge(challenge_path(settings.challenge))
    over = challenge.is_over(datetime.now(UTC))
    held_out = {track for track in KEYS if over and settings.has_held_out_score(track)}
    print_written(export(database, challenge, held_out, Path(args.folder)))


def _freeze(settings: Settings, database: Database, args: Namespace) -> None:
    """Reject all submissions until `thaw`."""
    freeze(database)
    say("Nothing more is taken in; what is in the queue is scored.")


def _thaw(settings: Settings, database: Database, args: Namespace) -> None:
    """Accept submissions again."""
    thaw(database)
    say("Submissions are taken in.")


def _back_up(settings: Settings, database: Database, args: Namespace) -> None:
    """Copy an SQLite database while it is in use."""
    print_written([database.back_up(Path(args.file))])


def _status(settings: Settings, database: Database, args: Namespace) -> None:
    """Count scorings by state, held-out ones too."""
    rows = [["score", "state", "submissions"], *([kind, state, str(n)] for kind, state, n in count_scorings(database))]
    print_table("Scorings", rows)


def _log(settings: Settings, database: Database, args: Namespace) -> None:
    """Print the log with what only organisers see: what was refused and why, what failed and why."""
    for event in read_whole_log(database, args.lines):
        say(f"{event.at:%Y-%m-%d %H:%M:%S} {event.text}")


TEAM: Arguments = {"name": {"type": str, "help": "Name of the team."}}
# By the words of a command: its function, whose docstring is its help, and its arguments with argparse's options.
COMMANDS: dict[str, tuple[Command, Arguments]] = {
    "teams add": (_add, TEAM),
    "teams renew": (_renew, TEAM),
    "teams revoke": (_revoke, TEAM),
    "teams list": (_list, {}),
    "rescore": (
        _rescore,
        {
            "numbers": {"type": int, "nargs": "*", "help": "Numbers of submissions."},
            "--failed": {"action": "store_true", "help": "All of which a score failed, the held-out one too."},
            "--scored": {"action": "store_true", "help": "All that are scored."},
        },
    ),
    "export": (_export, {"folder": {"type": str, "help": "Folder to write to."}}),
    "freeze": (_freeze, {}),
    "thaw": (_thaw, {}),
    "backup": (_back_up, {"file": {"type": str, "help": "File to write."}}),
    "status": (_status, {}),
    "log": (_log, {"--lines": {"type": PositiveInt, "default": 50, "help": "How many lines, the latest."}}),
}


def main(args: Sequence[str] | None = None) -> None:
    """Run one of the organiser's commands.

    Args:
        args: Settings, the command and its arguments; those of the process by default.
    """
    parser = settings_parser("What organisers of a challenge do.")
    commands = parser.add_subcommands(dest="command", help="What is done:")
    teams = OneLineErrorParser(description="Add, list and revoke teams.")
    commands.add_subcommand("teams", teams, help="Add, list and revoke teams.")
    team_commands = teams.add_subcommands(dest="action", help="What is done:")
    for words, (command, arguments) in COMMANDS.items():
        subparser = OneLineErrorParser(description=command.__doc__)
        for argument, options in arguments.items():
            subparser.add_argument(argument, **options)
        group = team_commands if words.startswith("teams ") else commands
        group.add_subcommand(words.removeprefix("teams "), subparser, help=command.__doc__)

    with one_line_errors():
        parsed = parser.parse_args(args)
        settings = make_settings(parser.instantiate(parsed))
        words, values = parsed.command, parsed[parsed.command]
        if words == "teams":
            words, values = f"teams {values.action}", values[values.action]
        _run(COMMANDS[words][0], settings, values)


def _run(command: Command, settings: Settings, args: Namespace) -> None:
    database = Database(settings.database_url)
    try:
        settings.folder.mkdir(OWNER_ONLY, parents=True, exist_ok=True)
        database.create_tables()
        command(settings, database, args)
    except UNAVAILABLE as error:
        raise UserError(f"database: cannot be used ({str(error).splitlines()[0]})") from error
    except OSError as error:
        raise UserError(f"data: {settings.data!r} cannot be written ({error.strerror})") from error
    finally:
        database.close()
