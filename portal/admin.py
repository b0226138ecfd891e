"""The organisers' commands, such as `headstart portal admin teams add NAME`."""

from collections.abc import Sequence

from jsonargparse import Namespace

from headstart.output.errors import UserError
from headstart.output.parser import OneLineErrorParser, one_line_errors
from headstart.output.printable import say
from headstart.portal.commands.command import Desk, give
from headstart.portal.commands.table import COMMANDS
from headstart.portal.records.database import UNAVAILABLE, Database
from headstart.portal.records.private_files import make_private_folder
from headstart.portal.settings import Settings, make_settings, settings_parser

GROUPS = {
    "teams": "Add, invite, approve, list and revoke teams.",
    "organisers": "Add, list and revoke organisers.",
}


def main(args: Sequence[str] | None = None) -> None:
    """Run one of the organiser's commands.

    Args:
        args: Settings, the command and its arguments; those of the process by default.
    """
    parser = settings_parser("Run the challenge of a portal: teams, submissions, announcements and backups.")
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
        if message := give(words, COMMANDS[words], Desk(settings, database), args):
            say(message)
    except UNAVAILABLE as error:
        raise UserError(f"database: cannot be used ({str(error).splitlines()[0]})") from error
    except OSError as error:
        raise UserError(f"data: {settings.data!r} cannot be written ({error.strerror})") from error
    finally:
        database.close()
