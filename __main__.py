"""The command `headstart`: one door to everything, `headstart --help` lists what there is."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence

from headstart.cli.commands import EVALUATIONS, NAMED, help_lines
from headstart.output.errors import UsageError, UserError
from headstart.output.import_paths import import_from_working_folder
from headstart.output.parser import one_line_errors
from headstart.output.printable import say
from headstart.output.sub_commands import load
from headstart.output.version import describe_version


def main(args: Sequence[str] | None = None) -> None:
    """Run one command.

    Args:
        args: The command and its options; those of the process by default.

    Raises:
        SystemExit: With 2 for a wrong command or option, 1 for another mistake of the user's.
    """
    given = list(sys.argv[1:] if args is None else args)
    with one_line_errors():
        if given[:1] in ([], ["--help"], ["-h"]):
            print("\n".join(help_lines()))
        elif given[0] == "--version":
            say(describe_version())
        else:
            _run(given)


def _run(given: list[str]) -> None:
    import_from_working_folder()
    words = 2 if " ".join(given[:2]) in NAMED else 1
    name = " ".join(given[:words])
    if name not in NAMED:
        close = difflib.get_close_matches(name, NAMED, n=1)
        closest = f" (closest: {close[0]})" if close else ""
        raise UsageError(f"{name!r} is no command{closest}; headstart --help lists them")
    command = NAMED[name]
    is_evaluation = name in EVALUATIONS
    home, begins = ("headstart.evaluate:main", (name,)) if is_evaluation else (command.home, command.begins)
    # By this, parsers know what their usage begins with.
    sys.argv[0] = "headstart" if is_evaluation else f"headstart {name}"
    try:
        run = load(home)
    except ModuleNotFoundError as error:
        if not command.extra:
            raise
        raise UserError(f"{name}: {error}; pip install 'headstart[{command.extra}]'") from error
    run([*begins, *given[words:]])


if __name__ == "__main__":
    main()
