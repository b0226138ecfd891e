"""The accuracies of a source on a target: those that the ledger has, and those that this run measures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from headstart.callbacks.ledger_results import LedgerResults
from headstart.output.errors import UserError
from headstart.output.printable import say
from headstart.store.json_digest import digest_of
from headstart.store.ledger import LedgerError, RunLedger, Trace, TraceKey

SECONDS_BETWEEN_LOOKS = 1.0


class AccuracyFiles(LedgerResults):
    """Writes the accuracies to the ledger, and results.json into the run's folder.

    An accuracy is found in the ledger by all that it depends on: the contents of the source's weights and of the
    target's photos, the settings, and the code. What is there is not measured again, in any run.

    Args:
        overwrite: Replace results of another origin that lie in the folder.
        ledger: Folder of the ledger; by default that in the environment variable HEADSTART_LEDGER, else `ledger` beside
            the run's folder.
    """

    def __init__(self, overwrite: bool = False, ledger: str | None = None) -> None:
        super().__init__(overwrite, ledger)
        self.identity = ""

    def follow(self, identity: str) -> None:
        """Take the digest of all that decides the results.

        Args:
            identity: The digest.

        Raises:
            UserError: Results of another origin are known, on another machine.
        """
        self.identity = identity
        self.require_known(identity)

    @contextmanager
    def opened(self, folder: Path) -> Iterator[RunLedger]:
        """Open the ledger.

        Args:
            folder: The run's folder.

        Raises:
            UserError: It cannot be used.
        """
        try:
            with self.open_ledger(folder) as ledger:
                yield ledger
        except LedgerError as error:
            raise UserError(f"results.ledger: {error}; choose another folder") from error


class Accuracies:
    """Counts of correct predictions by ordering, each a trace of one evaluation.

    Args:
        ledger: The ledger.
        fed: What decides them besides the training and the ordering; JSON values.
        training: How is trained; JSON values.
        orderings: Numbers of the orderings.

    Attributes:
        measured: Orderings that this run has measured.
    """

    def __init__(
        self, ledger: RunLedger, fed: Mapping[str, Any], training: Mapping[str, Any], orderings: Sequence[int]
    ) -> None:
        self.ledger, self.fed, self.training = ledger, fed, training
        stream, method = digest_of(fed), digest_of(training)
        self.keys = {ordering: TraceKey(stream, method, ordering) for ordering in orderings}
        self.measured: list[int] = []

    def counts(self) -> dict[int, int]:
        """Give what the ledger has, by ordering."""
        found = self.ledger.read(self.keys.values())
        return {ordering: int(found[key].correct[0]) for ordering, key in self.keys.items() if key in found}

    @property
    def missing(self) -> list[int]:
        """The orderings that it lacks."""
        there = self.counts()
        return [ordering for ordering in self.keys if ordering not in there]

    def measure(self, train: Callable[[int], int | None], told: Callable[[], Mapping[str, Any]]) -> bool:
        """Measure what is missing, and wait for what another process measures.

        Args:
            train: Gives the count of an ordering; None where training was ended before its end.
            told: Gives what else is to be known of what is fed, once there is a count.

        Returns:
            Whether none is missing any more.
        """
        is_waiting = False
        while missing := self.missing:
            # One at a time, so that several processes share them.
            ordering = next((each for each in missing if not self.ledger.claim([self.keys[each]])), None)
            if ordering is None:
                if not is_waiting:
                    say("waiting for another process, which measures the same")
                is_waiting = True
                time.sleep(SECONDS_BETWEEN_LOOKS)
                continue
            # Another process may have measured it before it gave it up.
            if ordering in self.missing:
                count = train(ordering)
                if count is None:
                    return False
                self._write(ordering, count, told())
            self.ledger.give_up([self.keys[ordering]])
        return True

    def _write(self, ordering: int, count: int, told: Mapping[str, Any]) -> None:
        self.ledger.record(self.fed, told=told)
        self.ledger.record(self.training)
        self.ledger.write({self.keys[ordering]: Trace(np.array([count]))})
        self.measured.append(ordering)
