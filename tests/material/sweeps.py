"""Sweeps of small comparisons, and what they leave."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import yaml

from headstart import sweep

Traces = dict[tuple[str, str, int], list[Any]]


def write(folder: Path, options: list[str], **parameters: Any) -> Path:
    parameters = parameters or {"criterion.evaluate_every": {"values": [1, 2]}}
    content = {
        "program": "train.py",
        "method": "grid",
        "command": ["${program}", *options, "${args}"],
        "parameters": {name.replace("__", "."): parameter for name, parameter in parameters.items()},
    }
    file = folder / f"{'-'.join(parameters)}.yaml"
    file.write_text(yaml.safe_dump(content, sort_keys=False))
    return file


def run(file: Path, output: Path, *options: str, code: int = 0) -> dict[str, dict[str, Any]]:
    """Run a sweep in this process; return its table."""
    try:
        sweep.main([str(file), f"--output={output}", f"--ledger={output}-ledger", *options])
        exit_code: Any = 0
    except SystemExit as ended:
        exit_code = ended.code
    assert exit_code == code
    return table(output)


def table(output: Path) -> dict[str, dict[str, Any]]:
    document = json.loads((output / "sweep.json").read_text())
    return {row["name"]: row for row in document["runs"]}


def traces(output: Path) -> Traces:
    """Return all traces of a sweep's ledger."""
    with sqlite3.connect(f"{output}-ledger/traces.sqlite") as base:
        rows = base.execute("SELECT stream, method, ordering, correct, diverged FROM traces")
        return {(stream, method, ordering): counts for stream, method, ordering, *counts in rows}


def results(output: Path) -> dict[str, dict[str, Any]]:
    """Read the results of all runs, without what differs between two that are equal."""
    documents = {path.parent.name: json.loads(path.read_text()) for path in output.glob("*/results.json")}
    for document in documents.values():
        del document["times"], document["environment"], document["sha256"]
        # The configuration names the folder.
        document.get("files_sha256", {}).pop("config.yaml", None)
    return documents
