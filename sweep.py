"""Run many comparisons: `headstart sweep configs/sweep/demo.yaml --workers 2`. Existing results are reused."""

import sys
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

if not __package__ and "headstart" not in sys.modules:
    # When this file is run by its path, it imports the suite around it, whether that is installed or not.
    _spec = spec_from_file_location("headstart", Path(__file__).resolve().parent / "__init__.py")
    sys.modules["headstart"] = module_from_spec(_spec)  # type: ignore[arg-type]
    sys.modules["headstart"].__spec__.loader.exec_module(sys.modules["headstart"])  # type: ignore[union-attr]

from headstart.cli.command_line import run_function
from headstart.output.parser import one_line_errors
from headstart.output.version import describe_version


def main(args: Sequence[str] | None = None) -> None:
    """Run one sweep.

    Args:
        args: The file and the options; those of the process by default.
    """
    arguments = list(sys.argv[1:] if args is None else args)
    with one_line_errors():
        if "--version" in arguments:
            print(describe_version())
            return

        from headstart.sweeps.sweep import sweep

        run_function(sweep, arguments)


if __name__ == "__main__":
    main()
