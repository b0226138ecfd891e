"""Validation of documents in a separate process, so that a large document delays no page."""

import asyncio
import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AsyncExitStack

from headstart.contract.challenge import Challenge
from headstart.contract.documents import Catalog, Registry
from headstart.contract.problems import ContractError, Problem
from headstart.contract.schema import Team as Track
from headstart.contract.submissions import check_submission
from headstart.portal.documents import Documents

DOCUMENT = "submission"
NICENESS = 10
# Limits for the validation of one document, and for waiting until the validator is free.
MAX_SECONDS, MAX_WAIT_SECONDS = 20.0, 60.0
# More problems of one document are only counted: nobody reads them, and writing them would delay pages.
MAX_PROBLEMS = 1000

# What the validating process has read.
_documents: list[tuple[Registry, Catalog, Challenge]] = []


class ValidatorError(Exception):
    """A document could not be validated: the process ended or took too long, or too many documents waited."""


class Validator:
    """Validates documents against a registry, a catalog and the rules of a challenge, one after the other.

    Args:
        documents: The documents of the challenge.
    """

    def __init__(self, documents: Documents) -> None:
        self._documents = documents.registry, documents.catalog, documents.challenge
        self._pool = self._open()
        # One document at a time, so that only its own time counts and only it ends with the process.
        self._lock, self._check_lock = asyncio.Lock(), asyncio.Lock()

    async def find_problems(self, content: bytes, track: Track, submitted: bool) -> list[Problem]:
        """Return the problems of a document; of very many the first.

        Args:
            content: The document.
            track: Team of the contract that it must be of.
            submitted: Whether it is submitted, rather than only checked. Anybody may check documents, so at most one
                such document comes before one that is submitted.

        Raises:
            ValidatorError: It could not be validated, probably through no fault of the document.
        """
        loop = asyncio.get_running_loop()
        try:
            async with AsyncExitStack() as locks:
                async with asyncio.timeout(MAX_WAIT_SECONDS):
                    if not submitted:
                        await locks.enter_async_context(self._check_lock)
                    await locks.enter_async_context(self._lock)
                try:
                    # The time in which the process starts does not count.
                    await loop.run_in_executor(self._pool, bool)
                    problems = loop.run_in_executor(self._pool, _find_problems, content, track)
                    return await asyncio.wait_for(problems, MAX_SECONDS)
                except (BrokenProcessPool, TimeoutError, RuntimeError):
                    self.close()
                    self._pool = self._open()
                    raise
        except (BrokenProcessPool, TimeoutError, RuntimeError) as error:
            raise ValidatorError(str(error)) from error

    def close(self) -> None:
        """End the process."""
        for process in list((getattr(self._pool, "_processes", None) or {}).values()):
            process.kill()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _open(self) -> ProcessPoolExecutor:
        # A fork of a process with threads might hold a lock for ever.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(1, mp_context=context, initializer=_start, initargs=self._documents)


def find_problems(
    content: bytes, track: Track, registry: Registry, catalog: Catalog, rules: Challenge
) -> list[Problem]:
    """Return the problems of a document; of very many the first, and their number."""
    try:
        check_submission(content, DOCUMENT, registry, catalog, track, rules)
    except ContractError as error:
        more = len(error.problems) - MAX_PROBLEMS
        rest = [Problem("", "", f"and {more:,} more problems")] if more > 0 else []
        return [*error.problems[:MAX_PROBLEMS], *rest]
    return []


def _start(registry: Registry, catalog: Catalog, challenge: Challenge) -> None:
    # Pages come first where processors are few.
    os.nice(NICENESS)
    # Ctrl-C reaches the server, which ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _documents.append((registry, catalog, challenge))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(0)


def _find_problems(content: bytes, track: Track) -> list[Problem]:
    return find_problems(content, track, *_documents[0])
