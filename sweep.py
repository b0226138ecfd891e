"""Run many comparisons: `python sweep.py configs/sweep/demo.yaml --workers 2` measures what the ledger lacks."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import jsonargparse

from output.parser import OneLineErrorParser, one_line_errors
from output.sub_commands import switched_on
from output.version import describe_version


def main(args: Sequence[str] | None = None) -> None:
    """Run one sweep.

    Args:
        args: The file and the options; those of the process by default.
    """
    given = list(sys.argv[1:] if args is None else args)
    with one_line_errors():
        if "--version" in given:
            print(describe_version())
            return
        from sweeps.sweep import sweep

        given = switched_on(given, ("--dry_run", "--overwrite"))
        jsonargparse.auto_cli(sweep, args=given, parser_class=OneLineErrorParser)


if __name__ == "__main__":
    main()
