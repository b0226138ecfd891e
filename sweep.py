"""Run many comparisons: `headstart sweep configs/sweep/demo.yaml --workers 2` measures what the ledger lacks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import jsonargparse

if not __package__ and "headstart" not in sys.modules:
    # Run by its path, a door leads to the suite around it, whether that is installed or not.
    _spec = spec_from_file_location("headstart", Path(__file__).resolve().parent / "__init__.py")
    sys.modules["headstart"] = module_from_spec(_spec)  # type: ignore[arg-type]
    sys.modules["headstart"].__spec__.loader.exec_module(sys.modules["headstart"])  # type: ignore[union-attr]

from headstart.output.parser import OneLineErrorParser, one_line_errors
from headstart.output.sub_commands import switched_on
from headstart.output.version import describe_version


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
        from headstart.sweeps.sweep import sweep
        from headstart.sweeps.sweep_file import refuse_options_of_runs

        refuse_options_of_runs(given)
        given = switched_on(given, ("--dry_run", "--overwrite"))
        jsonargparse.auto_cli(sweep, args=given, parser_class=OneLineErrorParser)


if __name__ == "__main__":
    main()
