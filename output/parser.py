"""A parser whose errors are one line, for the user's mistakes."""

import ast
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import UnsupportedOperation
from typing import Any, NoReturn, TextIO

import jsonargparse

from headstart.output.arguments import plain_arguments
from headstart.output.class_options import LISTS, ClassHelp, accept_other_names
from headstart.output.errors import Terminated, UsageError, UserError
from headstart.output.printable import printable, say
from headstart.output.shipped_files import find_configurations
from headstart.output.usage import OptionMistake, explain, file_mistake, unknown_group, whole_name

accept_other_names()

# The module of Lightning's class for the user's mistakes, and its name there.
LIGHTNING_MISTAKE = ("lightning.fabric.utilities.exceptions", "MisconfigurationException")
INTERRUPTED, CLOSED = 130, 141


class OneLineErrorParser(jsonargparse.ArgumentParser):
    """Reports the user's mistakes in one line, with the whole name of the option and the closest one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # An abbreviation that is unique today is another option's prefix tomorrow.
        super().__init__(*args, **{"allow_abbrev": False, "formatter_class": ClassHelp, **kwargs})

    def parse_args(self, args: Sequence[str] | None = None, *rest: Any, **kwargs: Any) -> Any:  # type: ignore[override]  # noqa: ANN401 - a namespace
        """Parse options, as the base class does; a UsageError where one has no such name or type."""
        arguments = find_configurations(self.plain_arguments(sys.argv[1:] if args is None else args))
        if not self.exit_on_error:
            arguments = [_as_yaml(argument) for argument in arguments]
        elif mistake := unknown_group(arguments, [action.dest for action in self._actions]):
            self.args = arguments
            self.error(str(mistake), mistake)
        # The configuration is printed when the next file has been read, unless nothing comes after.
        return super().parse_args(sorted(arguments, key=lambda arg: arg.startswith("--print_config")), *rest, **kwargs)

    def plain_arguments(self, args: Sequence[str]) -> list[str]:
        """Return arguments as this parser reads them; the parser of a class gets them so."""
        return plain_arguments(args, self._actions) if self.exit_on_error else list(args)

    def parse_path(self, cfg_path: Any, *rest: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - a namespace
        """Read a file of options, as the base class does; a UsageError where it is no text."""
        try:
            return super().parse_path(cfg_path, *rest, **kwargs)
        except UnicodeDecodeError as error:
            raise UsageError(
                f"config: {cfg_path} is not UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}"
            ) from error

    def validate(self, namespace: Any, skip_unset: bool = True, *rest: Any, **kwargs: Any) -> None:  # noqa: ANN401 - a namespace
        """Check values as the base class does, in classes also those that are null."""
        super().validate(namespace, skip_unset and self.exit_on_error, *rest, **kwargs)

    def format_help(self, *rest: Any) -> str:
        """Return the help. That of a class without options, such as a base class, refers to the lists of classes."""
        text: str = super().format_help(*rest)
        is_of_class = str(self.description).startswith("Help for --")
        return text if self._actions or not is_of_class else f"{text}\nThis class has no options; {LISTS}.\n"

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Raise a mistake as a UsageError.

        The parser of a class raises an OptionMistake instead. It passes through the parser of the option that takes
        the class, which knows the rest of the option's name.
        """
        causes = list(_causes(ex))
        if user_error := next((cause for cause in causes if isinstance(cause, UserError)), None):
            raise user_error

        text = " ".join(message.split())
        args = getattr(self, "args", None) or []
        nested = next((cause for cause in causes if isinstance(cause, OptionMistake)), None)
        types = {action.dest: getattr(action, "_typehint", None) for action in self._actions}
        names = [str(key) for key in self.get_defaults(skip_validation=True).keys()]  # noqa: SIM118 - a namespace
        mistake = explain(text, nested, types, names, args)
        if not self.exit_on_error:
            raise mistake from ex

        mistake = whole_name(mistake, args)
        closest = f" (closest: {mistake.closest})" if mistake.closest else ""
        line = ": ".join(filter(None, (mistake.name, mistake.reason)))
        raise UsageError(file_mistake(text, args) or line + closest) from ex


def _as_yaml(argument: str) -> str:
    """Return an argument for the parser of a class, whose value was read as YAML before and written as Python."""
    name, _, value = argument.partition("=")
    try:
        read = ast.literal_eval(value)
        text = json.dumps(read, ensure_ascii=False) if read is None or isinstance(read, dict | list) else value
    except (ValueError, SyntaxError, TypeError):
        return argument
    return f"{name}={text}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


@contextmanager
def mistakes_of_users() -> Iterator[None]:
    """Raise a user's mistake that is wrapped in other errors, or is one of Lightning's, as one of ours.

    Raises:
        UserError: It replaces the other error.
    """
    try:
        yield
    except Exception as error:
        # The parser wraps what is raised while it builds objects.
        mistake = next((each for each in _causes(error) if isinstance(each, _mistakes())), None)
        if mistake is None or (mistake is error and isinstance(error, UserError)):
            raise
        kind = UsageError if isinstance(mistake, UsageError) else UserError
        raise kind(str(mistake)) from error


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn a user's mistake into one line and exit code 1, or 2 for a wrong option; Ctrl-C has 130, SIGTERM 143.

    A command whose output nobody reads any more, as behind `| head`, ends silently.
    """
    try:
        with _raising_on_sigterm(), mistakes_of_users():
            try:
                yield
            finally:
                # Text that waits in the buffer would fail after the command's end.
                sys.stdout.flush()
        return
    except UserError as error:
        message, code = printable(" ".join(str(error).split())), error.code
    except OSError as error:
        if not _fails(sys.stdout):
            raise
        # Python writes the rest of its buffer at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise SystemExit(CLOSED) from None
        message, code = f"the output cannot be written ({error.strerror or error})", UserError.code
    except KeyboardInterrupt:
        message, code = "interrupted", INTERRUPTED
    except Terminated as error:
        message, code = "terminated", error.status
    say(f"error: {message}", sys.stderr)
    raise SystemExit(code)


def _fails(stream: TextIO) -> bool:
    """Return whether an output takes no more, as on a full disk or behind `| head`; other files may fail, too."""
    try:
        os.write(stream.fileno(), b"\n")
    except UnsupportedOperation:
        # The output is no file of the system, as in a notebook.
        return False
    except OSError:
        return True
    return False


@contextmanager
def _raising_on_sigterm() -> Iterator[None]:
    """Raise SIGTERM as Python raises Ctrl-C; signals reach the main thread alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(*_: object) -> NoReturn:
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


def _mistakes() -> tuple[type[Exception], ...]:
    """Return the classes of a user's mistakes. Lightning's class counts only once Lightning is imported."""
    module, name = LIGHTNING_MISTAKE
    return (UserError, getattr(sys.modules[module], name)) if module in sys.modules else (UserError,)
