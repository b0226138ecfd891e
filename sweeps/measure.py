"""One run of a sweep as a task: the one function that measures, wherever it runs."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from headstart.cli.task import command_line, find_task
from headstart.cli.task_cli import TaskCLI
from headstart.engines.task import Ask
from headstart.output.import_paths import import_from_working_folder
from headstart.output.processors import processors
from headstart.store.cache import cache_folder
from headstart.sweeps.lent_ledger import LentLedger
from headstart.sweeps.request import Files, Request


def measure(request: Request, ask: Ask) -> dict[str, Any]:
    """Measure what the ledger lacks of a run, and write its files.

    Args:
        request: What is asked for.
        ask: By which the command is asked for the ledger.

    Returns:
        Whether the run is complete, what ended it, `identity` of its results and how many traces were computed.
    """
    with ExitStack() as stack:
        stack.enter_context(_on(request.cpus))
        folder, shared = Path(request.folder), _shares_disk(request)
        if not shared:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="headstart-"))) / folder.name
        cli = _prepare(request, folder, ask)
        if not shared:
            cli.require_portable()
        document = cli.run()
        complete = bool(document.get("complete", cli.is_known))
        # Complete results are not replaced by others.
        if folder.exists() and not shared and (complete or not request.known):
            ask(Files(_pack(folder)))
    return {
        "complete": complete,
        "because": document.get("stopped_because") or cli.cut_off_because,
        "identity": cli.identity if complete else request.known,
        "computed_traces": document.get("times", {}).get("computed_traces", 0),
    }


def look(request: Request, ask: Ask) -> str:
    """Say what the ledger lacks of a run, computing and downloading nothing.

    Args:
        request: What is asked for.
        ask: By which the command is asked for the ledger.
    """
    with _on(request.cpus), TemporaryDirectory(prefix="headstart-") as folder:
        return _prepare(request, Path(folder) / "run", ask).missing()


def _prepare(request: Request, folder: Path, ask: Ask) -> TaskCLI:
    import_from_working_folder()
    options = [*request.options, f"--trainer.default_root_dir={folder}"]
    cli = command_line(find_task(options))(options, request.dashboard)
    cli.lend(LentLedger(cache_folder() / "lent", ask), request.known)
    return cli


def _shares_disk(request: Request) -> bool:
    mark = Path(request.mark)
    return mark.is_file() and mark.read_text() == request.token


@contextmanager
def _on(cpus: int) -> Iterator[None]:
    before = torch.get_num_threads()
    try:
        with processors(cpus):
            yield
    finally:
        torch.set_num_threads(before)


def _pack(folder: Path) -> bytes:
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        # The dashboard links to a log of its own elsewhere, which nobody would unpack.
        archive.add(folder, ".", filter=lambda each: None if each.issym() else each)
    return packed.getvalue()
