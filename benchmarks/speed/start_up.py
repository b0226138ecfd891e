"""Processor time of `headstart` listing its contents, and its ratio to that of the bare interpreter."""

from headstart.benchmarks.speed.frame import run

KINDS = ("methods", "datasets", "configs", "models", "measures", "metrics")
COMMANDS = {
    "python": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "metrics": ["-c", "from headstart.metrics import linear_cka, cka_null, log_me"],
    "--help": ["-m", "headstart", "--help"],
    **{f"list {kind}": ["-m", "headstart", "list", kind] for kind in KINDS},
}


def main(rounds: int = 9) -> None:
    """Run every command in turn, and print the least processor time of each, and its ratio to the bare interpreter's.

    Args:
        rounds: How often each is run.
    """
    times = [{name: run(*command).processor_seconds for name, command in COMMANDS.items()} for _ in range(rounds)]
    seconds = {name: min(each[name] for each in times) for name in COMMANDS}
    for name, each in seconds.items():
        print(f"{name}: {each:.2f} s, {each / seconds['python']:.1f} times python")
