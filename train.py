"""Compare transfer methods, or train one model: `headstart train --config configs/demo.yaml`.

Every option of a YAML file can be given on the command line with dots, `--data.batch_size=8`.
"""

import sys
from collections.abc import Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

if not __package__ and "headstart" not in sys.modules:
    # When this file is run by its path, it imports the suite around it, whether that is installed or not.
    _spec = spec_from_file_location("headstart", Path(__file__).resolve().parent / "__init__.py")
    sys.modules["headstart"] = module_from_spec(_spec)  # type: ignore[arg-type]
    sys.modules["headstart"].__spec__.loader.exec_module(sys.modules["headstart"])  # type: ignore[union-attr]

from headstart.cli.task import run_task
from headstart.output.arguments import as_arguments
from headstart.output.errors import INCOMPLETE
from headstart.output.parser import mistakes_of_users, one_line_errors
from headstart.output.version import describe_version


def main(args: Sequence[str] | None = None) -> None:
    """Run one comparison, or another task, from the command line.

    Args:
        args: Options; those of the process by default.
    """
    arguments = sys.argv[1:] if args is None else list(args)
    with one_line_errors():
        if "--version" in arguments:
            print(describe_version())
        elif not run_task(arguments).get("complete", False):
            raise SystemExit(INCOMPLETE)


def compare(config: str | Path, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Run one comparison, or another task, from Python.

    Args:
        config: A configuration file.
        options: Values by their names on the command line, such as `{"data.batch_size": 8}`.

    Returns:
        The results, as results.json holds them.

    Raises:
        UserError: If an option or the data is wrong.
    """
    with mistakes_of_users():
        return run_task([f"--config={config}", *as_arguments(options or {})])


if __name__ == "__main__":
    main()
