"""The command `python -m headstart.benchmarks`: measure, and write pages of docs/results from it."""

from typing import Any

import jsonargparse

from headstart.benchmarks import forecast_curves, mutations, pages, results
from headstart.output.errors import UserError

COMMANDS: dict[str, Any] = {
    "speed": pages.speed,
    "coverage": pages.coverage,
    "results": results.main,
    "forecast_curves": forecast_curves.main,
    "mutations": mutations.main,
}


def main() -> None:
    """Run a command, whose parameters are its options."""
    try:
        jsonargparse.auto_cli(COMMANDS, prog="python -m headstart.benchmarks")
    except UserError as error:
        raise SystemExit(f"error: {error}") from error


if __name__ == "__main__":
    main()
