"""Results that are a view of a ledger: one on this machine's disk, or that of a sweep."""

from __future__ import annotations

import os
from pathlib import Path

from headstart.output.errors import UserError
from headstart.store.ledger import Ledger


class LedgerResults:
    """Where a run's results are looked up and kept.

    Args:
        overwrite: Replace results of another origin that lie in the folder.
        ledger: Folder of the ledger; by default that in the environment variable HEADSTART_LEDGER, else `ledger` beside
            the run's folder.
    """

    def __init__(self, overwrite: bool, ledger: str | None) -> None:
        self.overwrite = overwrite
        self.ledger_folder = ledger
        self._lent: Ledger | None = None
        self._known = ""

    def lend(self, ledger: Ledger, known: str) -> None:
        """Take a ledger that is open already, and say which results are known.

        Args:
            ledger: The ledger, in place of one on this machine's disk.
            known: What `identity` was when the run's files were written; empty where they were not.
        """
        self._lent, self._known = ledger, known

    def open_ledger(self, folder: Path) -> Ledger:
        """Open the ledger, which closes as a context.

        Args:
            folder: The run's folder.

        Raises:
            LedgerError: It cannot be used.
        """
        chosen = self.ledger_folder or os.environ.get("HEADSTART_LEDGER") or folder.parent / "ledger"
        return self._lent or Ledger(Path(chosen).expanduser())

    def require_known(self, identity: str) -> None:
        """Refuse to replace results of another origin that lie on another machine.

        Args:
            identity: Digest of all that decides the results.

        Raises:
            UserError: The results that are known have another.
        """
        if self._known and identity != self._known and not self.overwrite:
            raise UserError(
                "trainer.default_root_dir: the sweep's folder holds results of the same configuration, but of other "
                "code, photos, weights or versions; choose another folder, or give --results.overwrite=true"
            )
