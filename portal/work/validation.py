"""Validation of documents in a separate process, so that a large document delays no page."""

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path

from headstart.contract.challenge import Challenge
from headstart.contract.documents import Catalog, Registry, read_catalog, read_registry
from headstart.contract.problems import ContractError
from headstart.contract.schema import Team as Track
from headstart.contract.submissions import check_submission
from headstart.portal.phases import Phase

DOCUMENT = "submission"
NICENESS = 10
# Limits for the validation of one document, and for waiting until the validator is free.
MAX_SECONDS, MAX_WAIT_SECONDS = 20.0, 60.0
# More problems of one document are only counted: nobody reads them, and writing them would delay pages.
MAX_PROBLEMS = 1000

# The validating process reads these documents once, by phase.
_documents: dict[str, tuple[Registry, Catalog, Challenge]] = {}


class ValidatorError(Exception):
    """A document could not be validated: the process ended or took too long, or too many documents waited."""


class Validator:
    """Validates documents against the registry, the catalog and the rules of a phase, one after the other.

    Args:
        phases: The phases of the challenge.
    """

    def __init__(self, phases: Sequence[Phase]) -> None:
        self._files = [
            (phase.registry.path, phase.catalog.path, phase.challenge, (phase.registry.sha256, phase.catalog.sha256))
            for phase in phases
        ]
        self._pool = self._open()
        # One document at a time, so that only its own time counts and only it ends with the process.
        self._lock, self._check_lock = asyncio.Lock(), asyncio.Lock()

    async def find_problems(self, content: bytes, phase: str, track: Track, submitted: bool) -> list[dict[str, str]]:
        """Return the problems of a document, each with `pointer`, `value` and `rule`; of very many the first.

        Args:
            content: The document.
            phase: Name of the phase.
            track: Team of the contract that it must be of.
            submitted: Whether it is submitted, rather than only checked. Anybody may check documents, so at most one
                such document comes before one that is submitted.

        Raises:
            ValidatorError: It could not be validated, probably through no fault of the document.
        """
        try:
            async with AsyncExitStack() as locks:
                async with asyncio.timeout(MAX_WAIT_SECONDS):
                    if not submitted:
                        await locks.enter_async_context(self._check_lock)
                    await locks.enter_async_context(self._lock)
                return await self._validate(content, phase, track)
        except (BrokenProcessPool, TimeoutError, RuntimeError) as error:
            raise ValidatorError(str(error)) from error

    async def _validate(self, content: bytes, phase: str, track: Track) -> list[dict[str, str]]:
        loop = asyncio.get_running_loop()
        try:
            # The process reads its documents when it starts, and a catalog may be large.
            await loop.run_in_executor(self._pool, _wait_for_documents)
            problems = loop.run_in_executor(self._pool, _find_problems, content, phase, track)
            return await asyncio.wait_for(problems, MAX_SECONDS)
        except (BrokenProcessPool, TimeoutError, RuntimeError):
            self.close()
            self._pool = self._open()
            raise

    def close(self) -> None:
        """End the process."""
        for process in list((getattr(self._pool, "_processes", None) or {}).values()):
            process.kill()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _open(self) -> ProcessPoolExecutor:
        # A fork of a process with threads might hold a lock for ever.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(1, mp_context=context, initializer=_start, initargs=(self._files,))


def _start(files: Sequence[tuple[Path, Path, Challenge, tuple[str, str]]]) -> None:
    # Pages come first where processors are few.
    os.nice(NICENESS)
    # Ctrl-C reaches the server, which ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for registry_file, catalog_file, challenge, digests in files:
        registry, catalog = read_registry(registry_file), read_catalog(catalog_file)
        # A file may have changed since the server started, which scores by what it read then.
        if (registry.sha256, catalog.sha256) != digests:
            raise RuntimeError(f"the registry or the catalog of {challenge.name} has changed; restart the portal")
        _documents[challenge.name] = registry, catalog, challenge


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(0)


def _wait_for_documents() -> None:
    assert _documents


def _find_problems(content: bytes, phase: str, track: Track) -> list[dict[str, str]]:
    registry, catalog, challenge = _documents[phase]
    try:
        check_submission(content, DOCUMENT, registry, catalog, track, challenge)
    except ContractError as error:
        problems = [asdict(problem) for problem in error.problems[:MAX_PROBLEMS]]
        if (more := len(error.problems) - len(problems)) > 0:
            problems.append({"pointer": "", "value": "", "rule": f"and {more:,} more problems"})
        return problems
    return []
