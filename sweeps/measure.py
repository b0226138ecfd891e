"""One run of a sweep as a task, which is the same function on every engine."""

import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from headstart.cli.task import command_line, find_task
from headstart.cli.task_cli import TaskCLI
from headstart.engines.task import Send, TaskMessage
from headstart.output.import_paths import import_from_working_folder
from headstart.output.processors import processors
from headstart.store.cache import cache_folder
from headstart.store.ledger import Ledger, RunLedger
from headstart.store.ledger_file import FILE, LedgerError
from headstart.store.ledger_reader import LedgerReader
from headstart.sweeps.request import LedgerProxy, RunRequest


def measure(request: RunRequest, send: Send) -> dict[str, Any]:
    """Measure the traces of a run that the ledger lacks, and write its files.

    Args:
        request: The run.
        send: Sends messages to the command.

    Returns:
        Whether the run is complete, what ended it, `identity` of its results and how many traces were computed.
    """
    with ExitStack() as stack:
        stack.enter_context(_limited_to(request.cpus))
        folder, shared = Path(request.folder), _shares_disk(request)
        if not shared:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="headstart-"))) / folder.name
        cli = _prepare(request, folder, partial(_open_ledger, request, send))
        if not shared:
            cli.require_portable()

        document = cli.run()
        complete = bool(document.get("complete", cli.is_known))
        # Incomplete results do not replace complete ones.
        if folder.exists() and not shared and (complete or not request.known):
            send(TaskMessage("folder", _pack(folder)))
    return {
        "complete": complete,
        "because": document.get("stopped_because") or cli.cut_off_because,
        "identity": cli.identity if complete else request.known,
        "computed_traces": document.get("times", {}).get("computed_traces", 0),
    }


def find_missing(request: RunRequest, send: Send) -> str:
    """Describe what the ledger lacks of a run, without computing or downloading anything.

    Args:
        request: The run.
        send: Sends messages to the command.
    """
    with _limited_to(request.cpus), TemporaryDirectory(prefix="headstart-") as run:
        if request.ledger is None:
            open_ledger: Callable[[], RunLedger] = partial(LedgerProxy, Path(run), partial(_call, send))
        else:
            ledger = Path(request.ledger)
            open_ledger = partial(LedgerReader, ledger if (ledger / FILE).is_file() else None)
        return _prepare(request, Path(run) / "run", open_ledger).missing()


def _open_ledger(request: RunRequest, send: Send) -> RunLedger:
    if request.ledger is not None:
        return Ledger(Path(request.ledger))
    return LedgerProxy(cache_folder() / "lent", partial(_call, send))


def _call(send: Send, method: str, *arguments: Any) -> Any:  # noqa: ANN401 - as the method demands
    """Call a method of the command's ledger, and raise its errors here."""
    answer = send(TaskMessage("ledger", (method, *arguments)))
    if isinstance(answer, LedgerError):
        raise answer
    return answer


def _prepare(request: RunRequest, folder: Path, open_ledger: Callable[[], RunLedger]) -> TaskCLI:
    import_from_working_folder()
    options = [*request.options, f"--trainer.default_root_dir={folder}"]
    cli = command_line(find_task(options))(options, request.dashboard)
    cli.use_ledger(open_ledger, request.known)
    return cli


def _shares_disk(request: RunRequest) -> bool:
    mark = Path(request.mark)
    return mark.is_file() and mark.read_text() == request.token


@contextmanager
def _limited_to(cpus: int) -> Iterator[None]:
    before = torch.get_num_threads()
    try:
        with processors(cpus):
            yield
    finally:
        torch.set_num_threads(before)


def _pack(folder: Path) -> bytes:
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        # The dashboard links to a log of its own elsewhere, which would be missing where this is unpacked.
        archive.add(folder, ".", filter=lambda each: None if each.issym() else each)
    return packed.getvalue()
