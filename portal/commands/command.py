"""A command of organisers: `headstart portal admin` and the desk in the browser run the same ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from textwrap import shorten
from typing import Any

from jsonargparse import Namespace

from headstart.output.printable import printable
from headstart.portal.phases import Phase, read_phases
from headstart.portal.records.database import Database
from headstart.portal.records.log import log_event
from headstart.portal.settings import Settings

MAX_LOGGED = 200


@dataclass
class Desk:
    """What a command works on.

    Attributes:
        settings: The organiser's settings.
        database: The portal's database.
        organiser: Who gives the command, for the log.
    """

    settings: Settings
    database: Database
    organiser: str = "the command line"

    @cached_property
    def phases(self) -> Sequence[Phase]:
        """The phases of the challenge, whose documents are read when they are needed."""
        return read_phases(self.settings)

    @property
    def now(self) -> datetime:
        """The time."""
        return datetime.now(UTC)


@dataclass(frozen=True)
class Command:
    """A command.

    Attributes:
        run: Does it, and returns a sentence about what was done. Its docstring is the command's help.
        arguments: argparse's options by argument; a name that begins with `--` is an option.
        in_browser: Whether it has a form at the desk, as those that change something have.
    """

    run: Callable[[Desk, Namespace], str]
    arguments: dict[str, dict[str, Any]] = field(default_factory=dict)
    in_browser: bool = True


def give(words: str, command: Command, desk: Desk, args: Namespace) -> str:
    """Log who gives a command that changes something, run it, and return its sentence.

    Args:
        words: The words of the command.
        command: The command.
        desk: What it works on.
        args: Its arguments.

    Raises:
        UserError: The command says why it was not done.
    """
    if command.in_browser:
        given = ", ".join(f"{name}: {value}" for name, value in vars(args).items() if value)
        shown = f" ({shorten(printable(given), MAX_LOGGED)})" if given else ""
        message = f"{desk.organiser} ran the command `{words}`{shown}."
        with desk.database.writing() as session:
            log_event(session, desk.now, "command", message)
    return command.run(desk, args)
