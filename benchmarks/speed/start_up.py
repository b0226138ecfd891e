"""Processor time of `headstart` listing its contents, and its ratio to that of the bare interpreter."""

from functools import partial

from headstart.benchmarks.speed.frame import compare, processor_time_of_commands, ratios, run

KINDS = ("methods", "datasets", "configs", "models", "measures", "metrics")
COMMANDS = {
    "python": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "metrics": ["-c", "from headstart.metrics import linear_cka, cka_null, log_me"],
    "--help": ["-m", "headstart", "--help"],
    **{f"list {kind}": ["-m", "headstart", "list", kind] for kind in KINDS},
}


def main(rounds: int = 9) -> dict[str, float]:
    """Run every command in turn, and print the least processor time of each, and its ratio to the bare interpreter's.

    Args:
        rounds: How often each is run.

    Returns:
        The ratios, by command.
    """
    commands = {name: partial(run, *command) for name, command in COMMANDS.items()}
    return ratios(compare(commands, "python", rounds, summary=min, clock=processor_time_of_commands), "python")
