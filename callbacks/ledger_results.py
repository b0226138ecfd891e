"""Results that are a view of a ledger: the run's own one, or that of a sweep."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from headstart.output.errors import UserError
from headstart.store.ledger import Ledger, RunLedger


class LedgerResults:
    """Where a run's results are looked up and stored.

    Args:
        overwrite: Replace results of another origin that lie in the folder.
        ledger: Folder of the ledger; by default that in the environment variable HEADSTART_LEDGER, else `ledger` beside
            the run's folder.
    """

    def __init__(self, overwrite: bool, ledger: str | None) -> None:
        self.overwrite = overwrite
        self.ledger_folder = ledger
        self._open_ledger: Callable[[], RunLedger] | None = None
        self._known = ""

    def use_ledger(self, open_ledger: Callable[[], RunLedger], known: str) -> None:
        """Use the ledger of a sweep.

        Args:
            open_ledger: Opens the ledger.
            known: Value of `identity` when the run's files were written; empty where they were not.
        """
        self._open_ledger, self._known = open_ledger, known

    def open_ledger(self, folder: Path) -> RunLedger:
        """Open the ledger, which closes as a context.

        Args:
            folder: The run's folder.

        Raises:
            LedgerError: It cannot be used.
        """
        if self._open_ledger is not None:
            return self._open_ledger()
        chosen = self.ledger_folder or os.environ.get("HEADSTART_LEDGER") or folder.parent / "ledger"
        return Ledger(Path(chosen).expanduser())

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
