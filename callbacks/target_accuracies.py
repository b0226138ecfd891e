"""The accuracies of a source on a target: those that the ledger has, and those that this run measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headstart.callbacks.run_ledger import LedgerOptions, claim_missing
from headstart.store.json_digest import digest_of
from headstart.store.ledger import RunLedger, Trace, TraceKey


class AccuracyFiles(LedgerOptions):
    """Writes the accuracies to the ledger, and results.json into the run's folder.

    An accuracy is found in the ledger by all that it depends on: the contents of the source's weights and of the
    target's photos, the settings, and the code. Stored accuracies are not measured again, in any run.

    Args:
        overwrite: Replace results of another origin that lie in the folder.
        ledger: Folder of the ledger; by default that in the environment variable HEADSTART_LEDGER, else `ledger` beside
            the run's folder.

    Attributes:
        identity: Digest of all that decides the results, empty until it is known.
    """

    identity = ""


class Accuracies:
    """Counts of correct predictions by ordering, each a trace of one evaluation.

    Args:
        ledger: The ledger.
        fed: What decides them besides the training and the ordering; JSON values.
        training: How the source is trained; JSON values.
        orderings: Numbers of the orderings.

    Attributes:
        measured: Orderings that this run has measured.
    """

    def __init__(
        self, ledger: RunLedger, fed: Mapping[str, Any], training: Mapping[str, Any], orderings: Sequence[int]
    ) -> None:
        self.ledger, self.fed, self.training = ledger, fed, training
        self.stream, method = digest_of(fed), digest_of(training)
        self.keys = {ordering: TraceKey(self.stream, method, ordering) for ordering in orderings}
        self.measured: list[int] = []

    def counts(self) -> dict[int, int]:
        """Return the stored counts by ordering."""
        traces = self.ledger.read(self.keys.values())
        return {ordering: int(traces[key].correct[0]) for ordering, key in self.keys.items() if key in traces}

    @property
    def missing(self) -> list[int]:
        """The orderings that the ledger lacks."""
        stored = self.counts()
        return [ordering for ordering in self.keys if ordering not in stored]

    def measure(self, train: Callable[[int], int | None], describe: Callable[[], Mapping[str, Any]]) -> bool:
        """Measure what is missing, and wait for other processes that measure the same.

        Args:
            train: Returns the count of an ordering; None where training was ended before its end.
            describe: Returns the description of the stream for readers of the ledger, once there is a count.

        Returns:
            Whether none is missing any more.
        """
        for ordering in claim_missing(lambda: bool(self.missing), self._claim):
            # Another process may have measured it before it released it.
            if ordering in self.missing:
                count = train(ordering)
                if count is None:
                    return False
                self.ledger.record(self.fed, description=describe())
                self.ledger.record(self.training)
                self.ledger.write({self.keys[ordering]: Trace(np.array([count]))})
                self.measured.append(ordering)
            self.ledger.release([self.keys[ordering]])
        return True

    def _claim(self) -> tuple[int | None, str | None]:
        """Claim one ordering, so that several processes share the missing ones."""
        holder = None
        for ordering in self.missing:
            held = self.ledger.claim([self.keys[ordering]])
            if not held:
                return ordering, None
            holder = next(iter(held.values()))
        return None, holder
