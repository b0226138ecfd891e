"""The replication section: commands, configurations, environments and digests."""

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from headstart.contract.tables.grouping import grouped
from headstart.evaluation.runs import Run
from headstart.output.files import digest_file
from headstart.output.page.layout import Part, Section, Text
from headstart.output.tables import Table

# Shown characters of a digest.
SHOWN = 16
# Each command writes its run into a folder in this one, and all share an initially empty ledger there.
AGAIN = "runs/again"
LEDGER = f"--results.ledger={AGAIN}/ledger"
CONFIG = "config.yaml"
FILE = "weights_file_sha256"
DIGESTS = {
    "stream_sha256": "stream",
    "weights_sha256": "weights as loaded",
    FILE: "file of weights",
    "train_photos_sha256": "training photos",
    "validation_photos_sha256": "validation photos",
}


def replication(document: Mapping[str, Any], runs: Sequence[Run]) -> Section:
    """Return the section with the commands of every setting, and the environments of the runs.

    Args:
        document: The content of `leaderboard.json`.
        runs: The runs that its settings name; other folders are ledgers.
    """
    folders = {str(run.folder): (f"{AGAIN}/{number}", run) for number, run in enumerate(runs, 1)}
    parts = [
        Part("This page", commands=[Text("", _page_command(document))]),
        *(_part(setting, folders) for setting in document["settings"]),
        Part("Environment and digests", tables=[_environments(runs), _digests(runs)] if runs else []),
    ]
    return Section("replication", "Replication", parts=parts)


def _page_command(document: Mapping[str, Any]) -> str:
    options = document["asked"]
    values = {**options["criterion"], "baseline": options["baseline"]}
    values |= {name: _flow(options[name]) for name in ("where", "methods", "tuned") if options[name]}
    arguments = [f"--{name}={value}" for name, value in values.items()]
    arguments += ["--incomplete"] * options.get("incomplete", False)
    return shlex.join(["headstart", "report", *document["folders"], *arguments])


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


def _flow(options: Mapping[str, Any] | list[str]) -> str:
    return yaml.safe_dump(options, default_flow_style=True, width=math.inf, allow_unicode=True, sort_keys=False).strip()


def _environments(runs: Sequence[Run]) -> Table:
    """Return the environments of the runs: a column for each environment that differs."""
    groups = grouped((json.dumps(run.document.get("environment", {}), sort_keys=True), str(run.folder)) for run in runs)
    environments = [json.loads(environment) for environment in groups]
    keys = dict.fromkeys(key for environment in environments for key in environment)
    titles = [f"{first} and {len(others)} more" if others else first for first, *others in groups.values()]

    rows = [["of", *(titles if len(groups) > 1 else ["all runs"])]]
    rows += [[key, *(str(environment.get(key) or "") for environment in environments)] for key in keys]
    return Table("Environment", rows)


def _digests(runs: Sequence[Run]) -> Table:
    files = (CONFIG, "results.json")
    rows = [["run", "complete", *DIGESTS.values(), *files]]
    for run in runs:
        complete = "yes" if run.document["complete"] else f"no: {run.document['stopped_because']}"
        known = {**run.protocol, FILE: run.document.get(FILE)}
        digests = [*(str(known.get(key) or "") for key in DIGESTS), *(digest_file(run.folder / name) for name in files)]
        rows.append([str(run.folder), complete, *(each[:SHOWN] for each in digests)])
    return Table(f"Digests: the first {SHOWN} digits of SHA-256", rows)
