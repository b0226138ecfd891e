"""The ledger of a run: the options for it, and how processes share the measurement of what it lacks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from headstart.output.errors import UserError
from headstart.output.printable import say
from headstart.store.ledger import Ledger, LedgerError, RunLedger

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
        self._known = ""

    def use_ledger(self, open_ledger: Callable[[], RunLedger], known: str) -> None:
        """Use the ledger of a sweep.

        Args:
            open_ledger: Opens the ledger.
            known: Value of `identity` when the run's files were written; empty where they were not.
        """
        self._open_ledger, self._known = open_ledger, known

    @contextmanager
    def opened_ledger(self, folder: Path) -> Iterator[RunLedger]:
        """Open the ledger, and close it at the end.

        Args:
            folder: The run's folder.

        Raises:
            UserError: The ledger cannot be used, now or within the block.
        """
        chosen = self.ledger or os.environ.get("HEADSTART_LEDGER") or folder.parent / "ledger"
        try:
            with Ledger(Path(chosen).expanduser()) if self._open_ledger is None else self._open_ledger() as ledger:
                yield ledger
        except LedgerError as error:
            raise UserError(f"results.ledger: {error}; choose another folder") from error

    def require_known(self, identity: str) -> None:
        """Raise an error if the sweep's folder, on another machine perhaps, has results of another origin.

        Args:
            identity: Digest of all that decides the results.

        Raises:
            UserError: The known results have another identity.
        """
        if self._known and identity != self._known and not self.overwrite:
            raise UserError(
                "trainer.default_root_dir: the sweep's folder holds results of the same configuration, but of other "
                "code, photos, weights or versions; choose another folder, or give --results.overwrite=true"
            )


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
                say(f"waiting for process {holder}, which measures the same")
            is_waiting = True
            time.sleep(SECONDS_BETWEEN_LOOKS)
