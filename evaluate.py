"""Evaluate runs: `headstart sample-efficiency runs/demo` scores a run of headstart train again."""

import sys
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

if not __package__ and "headstart" not in sys.modules:
    # When this file is run by its path, it imports the suite around it, whether that is installed or not.
    _spec = spec_from_file_location("headstart", Path(__file__).resolve().parent / "__init__.py")
    sys.modules["headstart"] = module_from_spec(_spec)  # type: ignore[arg-type]
    sys.modules["headstart"].__spec__.loader.exec_module(sys.modules["headstart"])  # type: ignore[union-attr]

from headstart.cli.command_line import run_command
from headstart.cli.commands import EVALUATIONS


def main(args: Sequence[str] | None = None) -> None:
    """Run one command of evaluation.

    Args:
        args: The command and its options; those of the process by default.
    """
    run_command(args, EVALUATIONS, "evaluate.py")


if __name__ == "__main__":
    main()
