"""One run of a sweep as a task: the one function that measures, wherever it runs."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import torch

from cli.comparison import ComparisonCLI
from datamodules.row_policy import NotStoredError
from engines.task import Ask
from output.parser import import_from_working_folder
from output.processors import processors
from store.cache import cache_folder
from sweeps.lent_ledger import LentLedger
from sweeps.request import Files, Request


def measure(request: Request, ask: Ask) -> dict[str, Any]:
    """Measure what the ledger lacks of a run, and write its files.

    Args:
        request: What is asked for.
        ask: By which the command is asked for the ledger.

    Returns:
        Whether the run is complete, what ended it, `identity` of its results and how many traces were computed.
    """
    with _on(request.cpus):
        cli = _prepare(request, ask)
        document = cli.run()
    folder = Path(request.folder)
    complete = bool(document.get("complete", cli.results.is_known))
    if folder.exists() and not _shares_disk(request):
        archive = _pack(folder)
        shutil.rmtree(folder)
        # Complete results are not replaced by others.
        if complete or not request.known:
            ask(Files(archive))
    return {
        "complete": complete,
        "because": document.get("stopped_because") or cli.criterion.cut_off_because,
        "identity": cli.results.identity if complete else request.known,
        "computed_traces": document.get("times", {}).get("computed_traces", 0),
    }


def look(request: Request, ask: Ask) -> str:
    """Say what the ledger lacks of a run, computing and downloading nothing.

    Args:
        request: What is asked for.
        ask: By which the command is asked for the ledger.
    """
    with _on(request.cpus):
        cli = _prepare(request, ask)
        stream = cli.datamodule
        stream.trainer, stream.only_stored = cli.trainer, True
        try:
            stream.setup("fit")
            missing = cli.results.begin(stream, cli.model).missing
        except NotStoredError as error:
            return f"{error}; what the ledger has of it is known after that"
        finally:
            cli.results.close()
    return f"{missing.sum()} of {missing.size} traces to measure"


def _prepare(request: Request, ask: Ask) -> ComparisonCLI:
    import_from_working_folder()
    cli = ComparisonCLI([*request.options, f"--trainer.default_root_dir={request.folder}"], request.group)
    cli.results.lend(LentLedger(cache_folder() / "lent", ask), request.known)
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
        archive.add(folder, ".")
    return packed.getvalue()
