"""The user's mistakes, and what ends a command from outside."""

import errno
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

# Exit code of a run that the same command continues: a temporary failure.
INCOMPLETE = 75
# An argument's name, as messages begin with it: `root: there is no folder ...`.
_ARGUMENT = re.compile(r"[a-z_][\w.]*: ")
# Messages of torch on a processor, on a GPU, and of the GPU's libraries.
_OUT_OF_MEMORY = re.compile(r"out of memory|can't allocate memory|not enough memory|ALLOC_FAILED", re.IGNORECASE)
# Position in a text, as PyYAML writes it, with the line that it shows.
_IN_YAML = re.compile(r' in "<[\w ]+>", (line \d+, column \d+|position \d+)(?:: .*? \^)?')


class UserError(ValueError):
    """A mistake of the user. Commands print its message alone: one line that says how to correct it.

    The message begins with the wrong argument, by its name where the mistake is found. Callers that know the option
    add its name with `prefix_errors`.

    Attributes:
        code: Exit code of the command.
    """

    code = 1


class UsageError(UserError):
    """A mistake in an option's name or type, found before anything is done."""

    code = 2


class Terminated(SystemExit):
    """SIGTERM, which schedulers send; it passes through the code like Ctrl-C, so that everything is cleaned up.

    Attributes:
        status: Exit code of the command.
    """

    status = 128 + signal.SIGTERM

    def __init__(self) -> None:
        super().__init__(self.status)


def reason_of(error: BaseException) -> str:
    """Return the first line of an error's message, or its class if it has none; the words alone of a system error."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return (str(error) or type(error).__name__).splitlines()[0]


def chain_of(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, and those that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def is_out_of_memory(error: BaseException | None) -> bool:
    """Return whether an error, or one that led to it, was raised by Python, the system or torch for lack of memory."""
    return any(
        isinstance(each, MemoryError)
        or (isinstance(each, OSError) and each.errno == errno.ENOMEM)
        or (isinstance(each, RuntimeError) and _OUT_OF_MEMORY.search(str(each)))
        for each in chain_of(error)
    )


def broken_yaml(message: object) -> str:
    """Return PyYAML's message about a text in one line, with line and column."""
    text = " ".join(str(message).split())
    return _IN_YAML.sub(lambda match: f" at {match[1]}" + "," * (match.end() < len(text)), text)


@contextmanager
def prefix_errors(option: str, about: str | tuple[str, ...] = "", single: bool = False) -> Iterator[None]:
    """Prefix the user's mistakes in this context with the name of an option.

    Args:
        option: The option, such as `data.photos`. A mistake that begins with `root: ` then begins with
            `data.photos.root: `. One that begins with no argument begins with `data.photos: `.
        about: Beginnings of the messages that get the prefix; by default all of them.
        single: Whether the option has no options of its own. `root: ` then becomes `photos: `.
    """
    try:
        yield
    except UserError as error:
        if not str(error).startswith(about):
            raise
        argument = _ARGUMENT.match(str(error))
        text = str(error)[argument.end() :] if argument and single else str(error)
        raise UserError(f"{option}{'.' if argument and not single else ': '}{text}") from error


@contextmanager
def explain_write_errors(what: str, remedy: str) -> Iterator[None]:
    """Raise an error of the system in this context, such as a full disk, as a UserError.

    Args:
        what: What is written: the option and the path, with which the message begins.
        remedy: What the user can do, with which the message ends.
    """
    try:
        yield
    except OSError as error:
        raise UserError(f"{what} cannot be written ({reason_of(error)}); {remedy}") from error


def other_schema(what: str, found: object, known: int) -> UserError:
    """Return the error of a file whose form has another number than the one that is read.

    Args:
        what: The option and the file, with which the message begins.
        found: The number in the file.
        known: The number of the form that is read.
    """
    return UserError(f"{what} has schema {found}, but this version of Headstart reads schema {known}; make it again")


def require_different(option: str, values: Sequence[str], minimum: int = 1) -> None:
    """Raise a UserError unless an option has a least number of values, all different."""
    if not minimum <= len(set(values)) == len(values):
        needed = ("one", "two")[minimum - 1]
        raise UserError(
            f"{option}: {', '.join(values) or 'none'} given; {needed} or more are needed, none of them twice"
        )
