"""The user's mistakes."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

# Exit code of what is to be gone on with by the same command: what the system calls a temporary failure.
INCOMPLETE = 75
# An argument's name, as messages begin with it: `root: there is no folder ...`.
_ARGUMENT = re.compile(r"[a-z_][\w.]*: ")
# Where something is in a text that is no file, in PyYAML's words, and the line that it shows.
_IN_YAML = re.compile(r' in "<[\w ]+>", (line \d+, column \d+|position \d+)(?:: .*? \^)?')


class UserError(ValueError):
    """A mistake of the user, whose message is one line that says how to mend it; the entries print it alone.

    The message begins with the argument that is wrong, by the name that it has where the mistake is found. Whoever
    knows the option by which that was given puts its name before it, with `prefix_errors`.

    Attributes:
        code: The exit code of a command that ends by it.
    """

    code = 1


class UsageError(UserError):
    """A mistake in an option's name or type, found before anything is done."""

    code = 2


class Terminated(SystemExit):
    """SIGTERM, by which schedulers end a command; it passes through the code like Ctrl-C, so that all is left in order.

    Attributes:
        status: The exit code of a command that ends by it.
    """

    status = 128 + signal.SIGTERM

    def __init__(self) -> None:
        super().__init__(self.status)


def reason_of(error: BaseException) -> str:
    """Give the first line of an error's message, or its kind where it has none; of the system's the words alone."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return (str(error) or type(error).__name__).splitlines()[0]


def broken_yaml(said: object) -> str:
    """Put what PyYAML says of a text into one line: what is wrong, and the line and column where it is."""
    text = " ".join(str(said).split())
    return _IN_YAML.sub(lambda found: f" at {found[1]}" + "," * (found.end() < len(text)), text)


@contextmanager
def prefix_errors(option: str, about: str = "") -> Iterator[None]:
    """Put an option's name before the user's mistakes that are found within.

    Args:
        option: The option, such as `data.photos`; a mistake that begins with `root: ` then begins with
            `data.photos.root: `, one that begins with no argument with `data.photos: `.
        about: How the mistakes begin that the option is to be put before; it is put before all by default.
    """
    try:
        yield
    except UserError as error:
        if not str(error).startswith(about):
            raise
        join = "." if _ARGUMENT.match(str(error)) else ": "
        raise UserError(f"{option}{join}{error}") from error


def require_different(option: str, values: Sequence[str], least: int = 1) -> None:
    """Check that so many values or more are given for an option, and none of them twice; else a UserError says so."""
    if not least <= len(set(values)) == len(values):
        needed = ("one", "two")[least - 1]
        raise UserError(
            f"{option}: {', '.join(values) or 'none'} given; {needed} or more are needed, none of them twice"
        )
