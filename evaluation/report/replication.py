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
from headstart.output.page.cells import text
from headstart.output.page.layout import Cell, Column, Part, Section, Table, Text

# Shown characters of a digest.
SHOWN = 16
# Each command writes its run into a folder in this one, and all share an initially empty ledger there.
AGAIN = "runs/again"
LEDGER = f"--results.ledger={AGAIN}/ledger"
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
    paragraphs = [
        "Each command measures the traces of its rows again, and writes their table. With the same photos, weights and "
        f"versions, the counts are the same. Each command has its own folder in {AGAIN}, and reuses results from the "
        "ledger there. The configuration of each run is below its commands.",
    ]
    folders = {str(run.folder): (f"{AGAIN}/{number}", run) for number, run in enumerate(runs, 1)}
    parts = [
        Part("This page", commands=[Text("", _page_command(document))]),
        *(_part(setting, folders) for setting in document["settings"]),
        Part("Environment and digests", tables=[_environments(runs), _digests(runs)] if runs else []),
    ]
    return Section("replication", "Replication", paragraphs, parts)


def _page_command(document: Mapping[str, Any]) -> str:
    options = document["asked"]
    values = {**options["criterion"], "baseline": options["baseline"]}
    values |= {name: _flow(options[name]) for name in ("where", "methods", "tuned") if options[name]}
    arguments = [f"--{name}={value}" for name, value in values.items()]
    arguments += ["--incomplete"] * options.get("incomplete", False)
    return shlex.join(["headstart", "report", *document["folders"], *arguments])


def _part(setting: Mapping[str, Any], runs: Mapping[str, tuple[str, Run]]) -> Part:
    """Return the commands of a setting: of its runs, and of each method alone beside the baseline."""
    of_setting = [runs[folder] for folder in setting["folders"] if folder in runs]

    # Methods of a ledger are in no run.
    lines, absent = [], []
    for number, name in enumerate((method["name"] for method in setting["methods"]), 1):
        with_method = [(folder, run) for folder, run in of_setting if name in run.curves.methods]
        absent += [name] * (not with_method)
        for folder, run in with_method:
            methods = run.model.get("methods") or {}
            option = f"--model.methods={_flow({name: methods[name]}) if name in methods else '{}'}"
            lines.append(f"# {name}\n{_command(run, f'{folder}-{number}', option)}")

    remarks, files = [], []
    if absent:
        remarks = [f"{', '.join(absent)}: from a ledger; there is no command for them."]
    if lines:
        files = [Text("Command of each row", "\n".join(lines))]
    for _, run in of_setting:
        path = run.folder / "config.yaml"
        files.append(Text(str(path), path.read_text(encoding="utf-8")))
    commands = [Text("", _command(run, folder)) for folder, run in of_setting]
    return Part(setting["name"], "", remarks, commands=commands, files=files)


def _command(run: Run, folder: str, *options: str) -> str:
    """Return the command that runs a configuration again, into a folder."""
    output = [f"--trainer.default_root_dir={folder}", LEDGER]
    return shlex.join(["headstart", "train", "--config", str(run.folder / "config.yaml"), *options, *output])


def _flow(options: Mapping[str, Any] | list[str]) -> str:
    return yaml.safe_dump(options, default_flow_style=True, width=math.inf, allow_unicode=True, sort_keys=False).strip()


def _environments(runs: Sequence[Run]) -> Table:
    """Return the environments of the runs: a column for each environment that differs."""
    groups = grouped((json.dumps(run.document.get("environment", {}), sort_keys=True), str(run.folder)) for run in runs)
    environments = [json.loads(environment) for environment in groups]
    keys = dict.fromkeys(key for environment in environments for key in environment)
    titles = [f"{first} and {len(others)} more" if others else first for first, *others in groups.values()]
    if len(groups) == 1:
        titles = ["all runs"]
    rows = [[Cell(key), *(text(environment.get(key)) for environment in environments)] for key in keys]
    return Table("Environment", [Column("of"), *map(Column, titles)], rows)


def _digests(runs: Sequence[Run]) -> Table:
    files = ("config.yaml", "results.json")
    digests = [Column(title, is_extra=True) for title in (*DIGESTS.values(), *files)]
    columns = [Column("run"), Column("complete"), *digests]
    rows = [
        [
            Cell(str(run.folder)),
            Cell("yes" if run.document["complete"] else f"no: {run.document['stopped_because']}"),
            *(text(str(known.get(key) or "")[:SHOWN]) for key in DIGESTS),
            *(Cell(digest_file(run.folder / name)[:SHOWN]) for name in files),
        ]
        for run in runs
        for known in [{**run.protocol, FILE: run.document.get(FILE)}]
    ]
    return Table(f"Digests: the first {SHOWN} digits of SHA-256", columns, rows)
