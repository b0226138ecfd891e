"""Processor time until `headstart` has listed what there is, and its ratio to that of the bare interpreter."""

from __future__ import annotations

import os
import subprocess
import sys

import jsonargparse

KINDS = ("methods", "datasets", "configs", "models", "measures", "metrics")
COMMANDS = {
    "python": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "metrics": ["-c", "from headstart.metrics import linear_cka, cka_null, log_me"],
    "--help": ["-m", "headstart", "--help"],
    **{f"list {kind}": ["-m", "headstart", "list", kind] for kind in KINDS},
}


def processor_seconds(command: list[str]) -> float:
    """Give the processor time of a process, in user and system mode."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return usage.ru_utime + usage.ru_stime


def main(rounds: int = 9) -> None:
    """Run every command in turn, and print the least processor time of each, and its ratio to the bare interpreter's.

    Args:
        rounds: How often each is run.
    """
    least = dict.fromkeys(COMMANDS, float("inf"))
    for _ in range(rounds):
        for name, command in COMMANDS.items():
            least[name] = min(least[name], processor_seconds(command))
    for name, seconds in least.items():
        print(f"{name:15} {seconds:.3f} s, {seconds / least['python']:4.1f} times the bare interpreter")


if __name__ == "__main__":
    jsonargparse.auto_cli(main)
