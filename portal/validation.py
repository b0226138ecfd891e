"""Documents are validated in a process beside, so that a large one holds up no page."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from pathlib import Path

from contract.challenge import Challenge
from contract.documents import Catalog, Registry, read_catalog, read_registry
from contract.problems import ContractError
from contract.schema import Team as Track
from contract.submissions import check_submission

DOCUMENT = "submission"
MOST_SECONDS = 20.0
NICENESS = 10

# Read once by the process beside.
_documents: tuple[Registry, Catalog, Challenge] | None = None


class ValidatorError(Exception):
    """A document could not be validated: the process ended, or took too long."""


class Validator:
    """Validates documents against a registry, a catalog and a challenge's rules.

    Args:
        registry: File of the model registry.
        catalog: File of the stimuli catalog.
        challenge: The challenge.
    """

    def __init__(self, registry: Path, catalog: Path, challenge: Challenge) -> None:
        self._documents = (registry, catalog, challenge)
        self._pool = self._open()

    async def find_problems(self, content: bytes, track: Track) -> list[dict[str, str]]:
        """Give everything that is wrong with a document, each with `pointer`, `value` and `rule`.

        Args:
            content: The document.
            track: Team of the contract that it has to be of.

        Raises:
            ValidatorError: It could not be validated, and that is not its fault as far as is known.
        """
        pool = self._pool
        try:
            asked = asyncio.get_running_loop().run_in_executor(pool, _find_problems, content, track)
            return await asyncio.wait_for(asked, MOST_SECONDS)
        except (BrokenProcessPool, TimeoutError, RuntimeError) as error:
            if self._pool is pool:
                self._pool = self._open()
                _end(pool)
            raise ValidatorError(str(error)) from error

    def close(self) -> None:
        """End the process."""
        _end(self._pool)

    def _open(self) -> ProcessPoolExecutor:
        # A fork of a process with threads might find a lock held for ever.
        beside = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(1, mp_context=beside, initializer=_begin, initargs=self._documents)


def _end(pool: ProcessPoolExecutor) -> None:
    for process in list((getattr(pool, "_processes", None) or {}).values()):
        process.kill()
    pool.shutdown(wait=False, cancel_futures=True)


def _begin(registry: Path, catalog: Path, challenge: Challenge) -> None:
    global _documents
    # Pages come first where processors are few.
    os.nice(NICENESS)
    # Ctrl-C is for the server, which ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _documents = read_registry(registry), read_catalog(catalog), challenge


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(0)


def _find_problems(content: bytes, track: Track) -> list[dict[str, str]]:
    assert _documents is not None
    registry, catalog, challenge = _documents
    try:
        check_submission(content, DOCUMENT, registry, catalog, track, challenge)
    except ContractError as error:
        return [asdict(problem) for problem in error.problems]
    return []
