"""One run of a sweep as a task: on the command's machine, or on one of a cluster, which sees no disk of its."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from headstart.cli.task import command_line, find_task
from headstart.cli.task_cli import TaskCLI
from headstart.output.import_paths import import_from_working_folder
from headstart.store.ledger import Ledger
from headstart.store.ledger_file import FILE, Trace, TraceKey
from headstart.store.ledger_reader import RunLedger
from headstart.sweeps.request import RunRequest, RunResult, pack, unpack


def measure(request: RunRequest) -> RunResult:
    """Measure the traces of a run that the ledger lacks, and write its files.

    Args:
        request: The run.
    """
    return _run(_prepare(request, request.folder, partial(Ledger, request.ledger)))


def measure_there(request: RunRequest, ledger: bytes) -> RunResult:
    """Measure a run as `measure` on a machine of a cluster, whose files and traces are returned.

    Args:
        request: The run.
        ledger: Content of the command's ledger.

    Raises:
        UserError: Something would be written that stays here.
    """
    with TemporaryDirectory(prefix="headstart-") as scratch:
        folder, ledger_folder = Path(scratch) / "runs" / request.folder.name, Path(scratch) / "ledger"
        folder.parent.mkdir()
        if request.files:
            assert isinstance(request.files, bytes)
            unpack(request.files, folder)
        ledger_folder.mkdir()
        (ledger_folder / FILE).write_bytes(ledger)

        recording = _RecordingLedger(ledger_folder)
        cli = _prepare(request, folder, lambda: recording)
        cli.require_portable()
        result = _run(cli)
        files = pack(folder) if folder.is_dir() else b""
    return replace(result, files=files, documents=recording.documents, traces=recording.traces)


class _RecordingLedger(Ledger):
    """A ledger that remembers what is stored in it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.documents: list[tuple[Mapping[str, Any], Mapping[str, Any] | None]] = []
        self.traces: dict[TraceKey, Trace] = {}

    def record(self, document: Mapping[str, Any], description: Mapping[str, Any] | None = None) -> str:
        """Store a document, as the base class does."""
        # Plain values: a number of an option may be of a type of the parser, which the command does not have.
        plain, plain_description = json.loads(json.dumps([document, description]))
        self.documents.append((plain, plain_description))
        return super().record(document, description)

    def write(self, traces: Mapping[TraceKey, Trace]) -> None:
        """Store traces, as the base class does."""
        super().write(traces)
        self.traces.update(traces)


def _prepare(request: RunRequest, folder: Path, open_ledger: Callable[[], RunLedger]) -> TaskCLI:
    import_from_working_folder()
    options = [*request.options, f"--trainer.default_root_dir={folder}"]
    cli = command_line(find_task(options))(options, request.dashboard)
    cli.use_ledger(open_ledger)
    return cli


def _run(cli: TaskCLI) -> RunResult:
    # A run sets torch's threads, and the next one may have more processors.
    threads = torch.get_num_threads()
    try:
        document = cli.run()
    finally:
        torch.set_num_threads(threads)
    computed = document.get("times", {}).get("computed_traces", 0)
    return RunResult(document["complete"], document.get("stopped_because", ""), computed)
