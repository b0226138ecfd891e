"""What it takes to get the same numbers again: commands, configurations, environments and digests."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from headstart.evaluation.runs import Run
from headstart.output.files import digest_file
from headstart.output.page.cells import text
from headstart.output.page.layout import Cell, Column, Part, Section, Table, Text

# Characters of a digest that are shown.
SHOWN = 16
# Folder of the commands' runs, each in one of its own, and the ledger of all of them, at first empty.
AGAIN = "runs/again"
LEDGER = f"--results.ledger={AGAIN}/ledger"
DIGESTS = {
    "stream_sha256": "stream",
    "weights_sha256": "weights",
    "train_photos_sha256": "training photos",
    "validation_photos_sha256": "validation photos",
}


def replication(document: Mapping[str, Any], runs: Sequence[Run]) -> Section:
    """Give the commands of every setting, and what they ran in.

    Args:
        document: The content of `leaderboard.json`.
        runs: The runs that its settings name; other folders are ledgers.
    """
    paragraphs = [
        "Each command measures the traces of its rows again and writes their table; given the same photos, weights and "
        f"versions, the counts are the same. Each has a folder of its own in {AGAIN}; what one of them has measured, "
        "the next ones take from the ledger there. The configuration of each run stands below its commands.",
    ]
    named = {str(run.folder): (f"{AGAIN}/{number}", run) for number, run in enumerate(runs, 1)}
    parts = [_part(setting, named) for setting in document["settings"]]
    tables = [_environments(runs), _digests(runs)] if runs else []
    whole = [
        Part("This page", "", [], commands=[Text("", _page_command(document))]),
        *parts,
        Part("Environment and digests", tables=tables),
    ]
    return Section("replication", "Replication", paragraphs, whole)


def _page_command(document: Mapping[str, Any]) -> str:
    asked = document["asked"]
    chosen = {name: asked[name] for name in ("where", "methods", "tuned", "choose") if asked[name]}
    options = [f"--{name}={value}" for name, value in {**asked["criterion"], "baseline": asked["baseline"]}.items()]
    options += [f"--{name}={_flow(value)}" for name, value in chosen.items()]
    return shlex.join(["headstart", "report", *document["folders"], *options])


def _part(setting: Mapping[str, Any], runs: Mapping[str, tuple[str, Run]]) -> Part:
    found = [runs[folder] for folder in setting["folders"] if folder in runs]
    methods = [method["name"] for method in setting["methods"]]
    commands = {
        name: [command for again, run in found if (command := _row_command(run, name, f"{again}-{row}"))]
        for row, name in enumerate(methods, 1)
    }
    absent = [name for name in methods if not commands[name]]
    remarks = [f"{', '.join(absent)}: of no run, but of a ledger or chosen among others; no command is known."] * bool(
        absent
    )
    rows = [f"# {name}\n{command}" for name in methods for command in commands[name]]
    files = [Text("Command of each row", "\n".join(rows))] if rows else []
    files += [Text(str(run.folder / "config.yaml"), _config(run)) for _, run in found]
    whole = [Text("", _command(run, again)) for again, run in found]
    return Part(setting["name"], "", remarks, commands=whole, files=files)


def _command(run: Run, again: str, *options: str) -> str:
    """Give the command that runs a configuration again, into a folder."""
    places = [f"--trainer.default_root_dir={again}", LEDGER]
    return shlex.join(["headstart", "train", "--config", str(run.folder / "config.yaml"), *options, *places])


def _row_command(run: Run, method: str, again: str) -> str | None:
    """Give the command that compares one method alone with the baseline; None where the run has no such method."""
    methods = run.model.get("methods") or {}
    if method in methods:
        return _command(run, again, f"--model.methods={_flow({method: methods[method]})}")
    return _command(run, again, "--model.methods={}") if method in run.curves.methods else None


def _flow(options: Mapping[str, Any] | list[str]) -> str:
    return yaml.safe_dump(options, default_flow_style=True, width=math.inf, allow_unicode=True, sort_keys=False).strip()


def _config(run: Run) -> str:
    return Path(run.folder / "config.yaml").read_text(encoding="utf-8")


def _environments(runs: Sequence[Run]) -> Table:
    """Tabulate what the runs ran in: a column for each environment that differs."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(json.dumps(run.document.get("environment", {}), sort_keys=True), []).append(run)
    environments = {described: json.loads(described) for described in found}
    keys = dict.fromkeys(key for environment in environments.values() for key in environment)
    titles = [_named([str(run.folder) for run in same], len(runs)) for same in found.values()]
    rows = [[Cell(key), *(text(environment.get(key)) for environment in environments.values())] for key in keys]
    return Table("Environment", [Column("of"), *map(Column, titles)], rows)


def _named(folders: Sequence[str], count: int) -> str:
    if len(folders) == count:
        return "all runs"
    return folders[0] if len(folders) == 1 else f"{folders[0]} and {len(folders) - 1} more"


def _digests(runs: Sequence[Run]) -> Table:
    columns = [
        Column("run"),
        Column("complete"),
        *map(Column, DIGESTS.values()),
        Column("config.yaml"),
        Column("results.json"),
    ]
    rows = [
        [
            Cell(str(run.folder)),
            Cell("yes" if run.document["complete"] else f"no: {run.document['stopped_because']}"),
            *(text(str(run.protocol.get(key) or "")[:SHOWN]) for key in DIGESTS),
            *(Cell(digest_file(run.folder / name)[:SHOWN]) for name in ("config.yaml", "results.json")),
        ]
        for run in runs
    ]
    return Table(f"Digests: the first {SHOWN} digits of SHA-256", columns, rows)
