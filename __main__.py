"""The command `headstart`; `headstart --help` lists its subcommands."""

from collections.abc import Sequence

from headstart.cli.command_line import run_command
from headstart.cli.commands import COMMAND_BY_NAME


def main(args: Sequence[str] | None = None) -> None:
    """Run one command.

    Args:
        args: The command and its options; those of the process by default.

    Raises:
        SystemExit: With 2 for a wrong command or option, 1 for another mistake of the user's.
    """
    run_command(args, COMMAND_BY_NAME)


if __name__ == "__main__":
    main()
