"""Commands about the challenge as a whole."""

from pathlib import Path

from jsonargparse import Namespace
from jsonargparse.typing import PositiveInt

from headstart.output.printable import print_written, say
from headstart.output.tables import print_table
from headstart.portal.commands.command import Command, Desk
from headstart.portal.commands.export import export
from headstart.portal.phases import all_bases
from headstart.portal.records.backups import record_backup
from headstart.portal.records.basis import find_held_back, read_bases
from headstart.portal.records.log import announce, read_whole_log, retract
from headstart.portal.records.submissions import count_scorings
from headstart.portal.work.intake import freeze, thaw


def _export(desk: Desk, args: Namespace) -> str:
    """Write leaderboards, submissions with their scores, and the log."""
    print_written(export(desk.database, desk.phases, desk.now, Path(args.folder)))
    with desk.database.reading() as session:
        held_back = len(find_held_back(session, read_bases(session)))
    return f"Scored by other documents or rules, and not on the leaderboards: {held_back}." if held_back else ""


def _freeze(desk: Desk, args: Namespace) -> str:
    """Reject all submissions until `thaw`."""
    freeze(desk.database)
    return "Submissions are paused. Submissions in the queue are still scored."


def _thaw(desk: Desk, args: Namespace) -> str:
    """Accept submissions again."""
    thaw(desk.database)
    return "Submissions are open again."


def _announce(desk: Desk, args: Namespace) -> str:
    """Show an announcement to everybody."""
    number = announce(desk.database, args.text)
    return f"The announcement is on the overview, in the log and in the feed. `retract {number}` removes it."


def _retract(desk: Desk, args: Namespace) -> str:
    """Retract an announcement."""
    retract(desk.database, args.number)
    return "Only organisers see the announcement now."


def _back_up(desk: Desk, args: Namespace) -> str:
    """Copy an SQLite database while it is in use."""
    copy = desk.database.back_up(Path(args.file))
    with desk.database.writing() as session:
        record_backup(session, copy.absolute())
    print_written([copy])
    return ""


def _status(desk: Desk, args: Namespace) -> str:
    """Count scorings by state, and compare the documents of the settings with the portal's."""
    counts = count_scorings(desk.database)
    print_table("Scorings", [["score", "state", "submissions"], *([kind, state, str(n)] for kind, state, n in counts)])

    with desk.database.reading() as session:
        bases = read_bases(session)
        held_back = len(find_held_back(session, bases))
    if held_back:
        say(
            f"Submissions off the leaderboard, because they were scored with other documents or rules: {held_back}. "
            "`rescore --held_back` scores them again."
        )
    if bases != all_bases(desk.phases):
        say("The portal has read other documents or rules than these settings name. Restart it to read them.")
    return ""


def _log(desk: Desk, args: Namespace) -> str:
    """Print the full log, including the reasons of refusals and failures."""
    for event in read_whole_log(desk.database, args.lines):
        say(f"{event.id} {event.at:%Y-%m-%d %H:%M:%S} {event.text}")
    return ""


CHALLENGE_COMMANDS = {
    "export": Command(_export, {"folder": {"type": str, "help": "Folder to write to."}}, in_browser=False),
    "freeze": Command(_freeze),
    "thaw": Command(_thaw),
    "announce": Command(_announce, {"text": {"type": str, "help": "A line of text."}}),
    "retract": Command(_retract, {"number": {"type": int, "help": "Number of the announcement in the log."}}),
    "backup": Command(_back_up, {"file": {"type": str, "help": "File to write."}}, in_browser=False),
    "status": Command(_status, in_browser=False),
    "log": Command(
        _log,
        {"--lines": {"type": PositiveInt, "default": 50, "help": "Number of lines; the latest are printed."}},
        in_browser=False,
    ),
}
