"""Finished comparisons: a repeated command prints the results again, without torch, if nothing has changed.

Runs that depend on the user's own code are never recognised, since this needs an import.
"""

import json
import os
import platform
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from headstart.cli.named_files import named_files
from headstart.datamodules.row_policy import device_kind
from headstart.modules.identity.origins import INSTALLED, own_loaded_modules
from headstart.output.files import digest_file, write_together
from headstart.output.import_paths import OWN, ROOT
from headstart.output.printable import print_lines, say
from headstart.output.shipped_files import CONFIGS, find_configurations
from headstart.output.tables import print_scores
from headstart.store.cache import cache_folder
from headstart.store.file_digests import SETTLED_NANOSECONDS, state_of, states_below, time_of_change
from headstart.store.json_digest import digest_of
from headstart.store.ledger_reader import LedgerReader

FOLDER = "finished_runs"
# Environment variables of the terminal; any other may change a result.
TERMINAL_VARIABLES = re.compile("_|COLORTERM|COLUMNS|LINES|OLDPWD|PWD|SHLVL|SSH_.*|TERM(_.*)?|TMUX.*|WINDOWID")
# Rooms of the suite that no run imports.
UNUSED = {"benchmarks", "portal", "scripts", "tests"}


@dataclass(frozen=True)
class FinishedRun:
    """What a run was made from and has written.

    Attributes:
        written: Its files, `results.json` last.
        inputs: Files and folders that it read, besides those that its options name.
        ledger: Folder of the ledger that holds its traces.
        stream: Digest of the traces' stream.
        methods: Digests of their methods.
        orderings: Numbers of their orderings.
        remarks: What to print below the table.
    """

    written: Sequence[str]
    inputs: Sequence[str]
    ledger: str
    stream: str
    methods: Sequence[str]
    orderings: Sequence[int]
    remarks: Sequence[str]

    def states(self) -> dict[str, str]:
        """Return the states of the inputs as they are now."""
        return {name: state for each in self.inputs for name, state in states_below(Path(each), folders=True).items()}

    def digests(self) -> list[str]:
        """Return the digests of the files that were written; a UserError if one cannot be read."""
        return [digest_file(Path(each)) for each in self.written]

    def has_traces(self) -> bool:
        """Whether the ledger has every trace; a LedgerError if it cannot be read."""
        with LedgerReader(Path(self.ledger)) as ledger:
            stored = ledger.traces(self.stream).counts
        return all((method, ordering) in stored for method in self.methods for ordering in self.orderings)


class RepeatedCommand:
    """A command of `headstart train` that may have run before, and the state of the files and variables that it reads.

    Args:
        options: Its options.
    """

    def __init__(self, options: Sequence[str]) -> None:
        self._began = time.time_ns()
        given = find_configurations(options)
        typed = {"options": given, "folder": os.getcwd(), "machine": platform.node()}  # noqa: PTH109 - a text
        self.file = cache_folder() / FOLDER / f"{digest_of(typed)}.json"
        self._states = {path: state for part in _code() for path, state in states_below(part, folders=False).items()}
        # A folder of packages changes when one is installed.
        self._states |= {path: state_of(path) for path in sys.path if Path(path).name in INSTALLED}
        self._states |= named_files(given)
        began_with = {
            "python": [sys.version, sys.prefix, sys.path],
            "environment": {name: each for name, each in os.environ.items() if not TERMINAL_VARIABLES.fullmatch(name)},
            "device": device_kind("auto"),
            "states": self._states,
        }
        self._origin = digest_of(began_with)

    def print_results(self) -> bool:
        """Print the results that this command had before, if nothing has changed since.

        Returns:
            Whether they were printed.
        """
        # A process that has imported torch may run other code than the files have.
        run = None if "torch" in sys.modules else self._find()
        if run is None:
            return False
        document = json.loads(Path(run.written[-1]).read_text(encoding="utf-8"))
        print_scores(document)
        print_lines(run.remarks)
        say(f"Complete: {document['stopped_because']}. Nothing has changed since these files were written:")
        for path in run.written:
            say(f"  {path}")
        return True

    def _find(self) -> FinishedRun | None:
        """Return the run that this command was before; None if there is none, or something has changed."""
        try:
            known = json.loads(self.file.read_text(encoding="utf-8"))
            if known["origin"] != self._origin:
                return None
            run = FinishedRun(**known["run"])
            is_same = known["states"] == digest_of(run.states()) and known["digests"] == run.digests()
            return run if is_same and run.has_traces() else None
        except (OSError, ValueError):
            # LedgerError and UserError are among these.
            return None

    def remember(self, run: FinishedRun | None, read_from: int) -> None:
        """Store what this command has written, unless its results may depend on something else.

        Args:
            run: What it was made from; None where that is not known.
            read_from: Time before its inputs were read, in nanoseconds.
        """
        if run is None or any(name != "__main__" or not _is_door() for name in own_loaded_modules()):
            return
        states = run.states()
        # Files that changed later, or shortly before, may have been read in another state.
        if not (_is_settled(self._states, self._began) and _is_settled(states, read_from)):
            return
        known = {"origin": self._origin, "states": digest_of(states), "digests": run.digests(), "run": asdict(run)}
        # A cache that cannot be written makes the next run slow, no more.
        with suppress(OSError):
            write_together(self.file.parent, {self.file.name: lambda path: path.write_text(json.dumps(known))})


def _is_settled(states: Mapping[str, str], read_from: int) -> bool:
    return all(time_of_change(state) < read_from - SETTLED_NANOSECONDS for state in states.values())


def _code() -> Iterator[Path]:
    """Return the suite's files and folders that may decide a result."""
    yield CONFIGS
    yield from (ROOT / f"{name}{ending}" for name in sorted(OWN - UNUSED) for ending in ("", ".py"))


def _is_door() -> bool:
    """Whether the process was started as one of the suite's own scripts."""
    script = Path(getattr(sys.modules["__main__"], "__file__", ""))
    return script.resolve().parent == ROOT and script.stem in OWN
