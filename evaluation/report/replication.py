"""The replication section: commands and configurations."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from headstart.evaluation.runs import Run
from headstart.output.page.layout import Part, Section, Text

# Each command writes its run into a folder in this one, and all share an initially empty ledger there.
AGAIN = "runs/again"
LEDGER = f"--results.ledger={AGAIN}/ledger"
CONFIG = "config.yaml"


def replication(document: Mapping[str, Any], runs: Sequence[Run]) -> Section:
    """Return the section with the commands of every setting.

    Args:
        document: The content of `leaderboard.json`.
        runs: The runs that its settings name; other folders are ledgers.
    """
    folders = {str(run.folder): (f"{AGAIN}/{number}", run) for number, run in enumerate(runs, 1)}
    parts = [_part(setting, folders) for setting in document["settings"]]
    return Section("replication", "Replication", parts=parts)


def _part(setting: Mapping[str, Any], runs: Mapping[str, tuple[str, Run]]) -> Part:
    """Return the commands and the configurations of a setting's runs."""
    of_setting = [runs[folder] for folder in setting["folders"] if folder in runs]
    measured = {name for _, run in of_setting for name in run.curves.methods}
    absent = [method["name"] for method in setting["methods"] if method["name"] not in measured]
    remarks = [f"{', '.join(absent)}: from a ledger; there is no command for them."] * bool(absent)

    files = [
        Text(str(path), path.read_text(encoding="utf-8")) for path in (run.folder / CONFIG for _, run in of_setting)
    ]
    commands = [Text("", _command(run, folder)) for folder, run in of_setting]
    return Part(setting["name"], "", remarks, commands=commands, files=files)


def _command(run: Run, folder: str) -> str:
    """Return the command that runs a configuration again, into a folder."""
    output = [f"--trainer.default_root_dir={folder}", LEDGER]
    return shlex.join(["headstart", "train", "--config", str(run.folder / CONFIG), *output])
