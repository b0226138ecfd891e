"""The ledger of a run: its options, the accuracies in it, and how processes share the measurement of what it lacks."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from headstart.modules.run_key import RunKey
from headstart.output.errors import UserError
from headstart.output.printable import say
from headstart.store.accuracy_traces import PhotoCounts
from headstart.store.ledger import Ledger
from headstart.store.ledger_file import LedgerError
from headstart.store.ledger_reader import RunLedger

SECONDS_BETWEEN_LOOKS = 1.0

Claimed = TypeVar("Claimed")


class LedgerOptions:
    """Where a run's results are looked up and stored.

    Args:
        overwrite: Replace results of another origin that lie in the folder.
        ledger: Folder of the ledger; by default that in the environment variable HEADSTART_LEDGER, else `ledger` beside
            the run's folder.
    """

    def __init__(self, overwrite: bool = False, ledger: str | None = None) -> None:
        self.overwrite = overwrite
        self.ledger = ledger
        self._open_ledger: Callable[[], RunLedger] | None = None

    def use_ledger(self, open_ledger: Callable[[], RunLedger]) -> None:
        """Use another ledger than that of the options, such as that of a sweep.

        Args:
            open_ledger: Opens the ledger.
        """
        self._open_ledger = open_ledger

    @contextmanager
    def opened_ledger(self, folder: Path) -> Iterator[RunLedger]:
        """Open the ledger, and close it at the end.

        Args:
            folder: The run's folder.

        Raises:
            UserError: The ledger cannot be used, now or within the block.
        """
        open_ledger = self._open_ledger or partial(Ledger, ledger_folder(self.ledger, folder))
        try:
            with open_ledger() as ledger:
                yield ledger
        except LedgerError as error:
            raise UserError(f"results.ledger: {error}; choose another folder") from error


def ledger_folder(chosen: str | None, folder: Path) -> Path:
    """Return the folder of a run's ledger.

    Args:
        chosen: The folder that the user named, if any.
        folder: The run's folder.
    """
    return Path(chosen or os.environ.get("HEADSTART_LEDGER") or folder.parent / "ledger").expanduser()


def claim_missing(
    is_missing: Callable[[], bool], claim: Callable[[], tuple[Claimed | None, str | None]]
) -> Iterator[Claimed]:
    """Claim missing traces until none is missing, and wait while other processes measure the rest.

    Args:
        is_missing: Returns whether traces are missing.
        claim: Claims missing traces; returns them, None if others hold them all, and the name of one of the others.

    Yields:
        The claimed traces, which are to be measured before the next are claimed.
    """
    is_waiting = False
    while is_missing():
        claimed, holder = claim()
        if claimed is not None:
            yield claimed
        # The others may have finished in the meantime.
        elif is_missing():
            if not is_waiting:
                say(f"waiting for process {holder}, which measures the same traces")
            is_waiting = True
            time.sleep(SECONDS_BETWEEN_LOOKS)


class AccuracyFiles(LedgerOptions):
    """Writes the accuracies to the ledger, and results.json into the run's folder.

    An accuracy is found in the ledger by all that it depends on: the contents of the source's weights and of the
    target's photos, the settings, and the code. Stored accuracies are not measured again, in any run.

    Args:
        overwrite: Replace results of another origin that lie in the folder.
        ledger: Folder of the ledger; by default that in the environment variable HEADSTART_LEDGER, else `ledger` beside
            the run's folder.
    """


class Accuracies:
    """Counts of correct predictions by ordering: of the validation photos, and then of any selection photos.

    Args:
        ledger: The ledger.
        key: What decides them besides the ordering.
        orderings: Numbers of the orderings.

    Attributes:
        measured: Orderings that this run has measured.
    """

    def __init__(self, ledger: RunLedger, key: RunKey, orderings: Sequence[int]) -> None:
        self.ledger, self.described = ledger, key.describe()
        self.keys = {ordering: key.trace(ordering) for ordering in orderings}
        self.measured: list[int] = []

    def counts(self) -> dict[int, PhotoCounts]:
        """Return the stored counts by ordering."""
        traces = self.ledger.read(self.keys.values())
        return {
            ordering: PhotoCounts.of_trace(traces[key].correct) for ordering, key in self.keys.items() if key in traces
        }

    @property
    def missing(self) -> list[int]:
        """The orderings that the ledger lacks."""
        stored = self.counts()
        return [ordering for ordering in self.keys if ordering not in stored]

    def measure(self, train: Callable[[int], PhotoCounts | None], describe: Callable[[], Mapping[str, Any]]) -> bool:
        """Measure what is missing, and wait for other processes that measure the same.

        Args:
            train: Returns the counts of an ordering; None where training was ended before its end.
            describe: Returns the description of the stream for readers of the ledger, once there is a count.

        Returns:
            Whether none is missing any more.
        """
        for ordering in claim_missing(lambda: bool(self.missing), self._claim):
            # Another process may have measured it before it released it.
            if ordering in self.missing:
                counted = train(ordering)
                if counted is None:
                    return False
                self.ledger.record(self.described["stream"], description=describe())
                self.ledger.record(self.described["method"])
                self.ledger.write({self.keys[ordering]: counted.trace()})
                self.measured.append(ordering)
            self.ledger.release([self.keys[ordering]])
        return True

    def _claim(self) -> tuple[int | None, str | None]:
        """Claim one ordering, so that several processes share the missing ones."""
        holder = None
        for ordering in self.missing:
            holders = self.ledger.claim([self.keys[ordering]])
            if not holders:
                return ordering, None
            holder = next(iter(holders.values()))
        return None, holder
