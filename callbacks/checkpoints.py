"""Checkpoints: the states of methods on disk, from which traces that were cut off are continued."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import torch
from numpy.typing import NDArray

from headstart.callbacks.traces import Traces
from headstart.metrics.sample_efficiency.curves import NOT_EVALUATED, SKIPPED
from headstart.modules.comparison import Comparison
from headstart.modules.method import Start
from headstart.modules.method_state import is_current
from headstart.modules.state_pickling import pickling, storage_problem
from headstart.output.errors import reason_of
from headstart.store.json_digest import digest_of
from headstart.store.ledger import TraceKey

FOLDER = "checkpoints"
# Where a process is killed, what it did in this time is done again, or more where writing would take more than a tenth.
SECONDS_BETWEEN = 2.0
SHARE = 0.1
# What else unpickling depends on; the sources of methods and the version of torch are part of what is looked up.
MADE_BY = {"format": 4, "lightning": lightning.__version__}


@dataclass(frozen=True)
class Pass:
    """What is fed side by side, and where it begins.

    Attributes:
        fed: The traces, `[methods, orderings]`.
        measured: Those of them that are missing; the others come along, because a method's state is that of all of its
            orderings together.
        known: The counts up to where they begin, `[evaluations, methods, orderings]`, as was known there; None at the
            beginning.
        states: The states of their methods then, by the methods' names; none at the beginning.
    """

    fed: NDArray[np.bool_]
    measured: NDArray[np.bool_]
    known: NDArray[np.int64] | None = None
    states: dict[str, Any] = field(default_factory=dict)


class Checkpoints:
    """The checkpoints of one comparison's passes, each in one file that is there as a whole or not.

    They are written with Python's pickle, so that only those of the same user are read.

    Args:
        ledger: Folder of the ledger.
        traces: The traces of the comparison.
        methods: Names of its methods.
        start: What they start from.

    Attributes:
        remarks: What could not be stored or read, and why.
    """

    def __init__(self, ledger: Path, traces: Traces, methods: list[str], start: Start) -> None:
        self.folder = ledger / FOLDER
        self.traces, self.methods, self.start = traces, methods, start
        self.stream = traces.keys[0][0].stream
        digests = [keys[0].method for keys in traces.keys]
        # The same method may be compared with itself.
        self._digests = [f"{digest}-{digests[:place].count(digest)}" for place, digest in enumerate(digests)]
        self._orderings = np.array([key.ordering for key in traces.keys[0]])
        self.remarks: set[str] = set()

    def begin(self, claimed: NDArray[np.bool_], most: int) -> Pass:
        """Choose what is fed next: what goes on from a checkpoint, else some orderings from the beginning.

        Args:
            claimed: The missing traces that are this process's to measure, `[methods, orderings]`.
            most: Number of orderings that fit side by side.
        """
        first = claimed.copy()
        first[:, np.flatnonzero(claimed.any(0))[most:]] = False
        self._passed, self._continued = Pass(first, first), None
        for file in () if self.traces.recompute else self._files():
            # What is of no use here need not be read as a whole.
            if self._continue(self._read(file, mmap=True), claimed) is not None:
                found = self._read(file, mmap=False)
                passed = self._continue(found, claimed)
                if passed is not None:
                    # States of other methods may go on later.
                    self._continued = file if len(passed.states) == len(found["methods"]) else None
                    self._passed = passed
                    break
        members = {self._digests[place]: self._orderings[fed].tolist() for place, fed in enumerate(self._passed.fed)}
        self._file = self.folder / f"{self.stream[:16]}-{digest_of(members)[:16]}.pt"
        self._due = time.monotonic() + SECONDS_BETWEEN
        return self._passed

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob(f"{self.stream[:16]}-*.pt"))

    def _continue(self, checkpoint: dict[str, Any], claimed: NDArray[np.bool_]) -> Pass | None:
        """Take of a checkpoint the methods whose missing traces are claimed, and are those that led up to it."""
        if not checkpoint:
            return None
        fed, states = np.zeros_like(claimed), {}
        missing, known = self.traces.missing, self.traces.correct[: checkpoint["evaluations"]].copy()
        for place, (name, digest) in enumerate(zip(self.methods, self._digests, strict=True)):
            found = checkpoint["methods"].get(digest)
            if found is None or not is_current(found["state"]):
                continue
            own, recorded = (np.isin(self._orderings, found[key]) for key in ("orderings", "recorded"))
            wanted = own & missing[place]
            if (
                own.sum() == len(found["orderings"])
                and wanted.any()
                and not (wanted & ~(recorded & claimed[place])).any()
                and self._has_led_to(found["counts"], known[:, place, recorded])
            ):
                fed[place], states[name] = own, found["state"]
                # Lazy evaluation may have made earlier evaluations after the checkpoint was written.
                known[:, place, recorded] = found["counts"]
        return Pass(fed, fed & missing, known, states) if states else None

    @staticmethod
    def _has_led_to(then: NDArray[np.int64], now: NDArray[np.int64]) -> bool:
        """Say whether counts agree with those of later, when more may be known."""
        return then.shape == now.shape and bool(np.where(then == SKIPPED, now != NOT_EVALUATED, then == now).all())

    def _read(self, file: Path, mmap: bool) -> dict[str, Any]:
        """Read a checkpoint; nothing where it is another user's, another version's or damaged."""
        try:
            if file.stat().st_uid != os.getuid():
                return {}
            pickle_module = pickling(self.start)
            found: dict[str, Any] = torch.load(file, self._place, pickle_module, weights_only=False, mmap=mmap)
        except FileNotFoundError:
            return {}
        # Whatever a damaged pickle may raise.
        except Exception as error:
            self.remarks.add(f"The checkpoint {file} cannot be read ({type(error).__name__}: {error}).")
            return {}
        return found if found.get("made_by") == MADE_BY else {}

    def _place(self, storage: Any, device: str) -> Any:  # noqa: ANN401 - torch has two classes of storage
        return storage if device == "cpu" else storage.to(device=torch.device(self.start.device))

    def save_if_due(self, comparison: Comparison) -> None:
        """Write a checkpoint where the last one is some time ago.

        Args:
            comparison: The methods, at the last evaluation.
        """
        # What is measured again is not stored before it is finished, and would not be gone on with.
        if time.monotonic() >= self._due and not self.traces.recompute:
            self.save(comparison, self._passed.measured & self.traces.running)

    def save(self, comparison: Comparison, wanted: NDArray[np.bool_]) -> None:
        """Write a checkpoint; where that cannot be, there is none.

        Args:
            comparison: The methods, at the last evaluation.
            wanted: The traces that are to be continued, `[methods, orderings]`.
        """
        began = time.monotonic()
        comparison.require_unspoilt()
        self.traces.write()
        passed, methods = self._passed, {}
        evaluations = int(self.traces.lengths[wanted].min())
        for name, state in comparison.states().items():
            place = self.methods.index(name)
            if reason := storage_problem(state):
                self.remarks.add(f"{name} cannot be continued where it is cut off ({reason}).")
            elif wanted[place].any():
                recorded = passed.measured[place]
                methods[self._digests[place]] = {
                    "orderings": self._orderings[passed.fed[place]].tolist(),
                    "recorded": self._orderings[recorded].tolist(),
                    "counts": self.traces.correct[:evaluations, place, recorded],
                    "state": state,
                }
        if methods:
            self._write({"made_by": MADE_BY, "evaluations": evaluations, "methods": methods})
        self._due = time.monotonic() + max(SECONDS_BETWEEN, (time.monotonic() - began) / SHARE)

    def _write(self, checkpoint: dict[str, Any]) -> None:
        # Of its own name, so that what a killed process leaves is overwritten; only one measures these traces.
        partial = self._file.with_suffix(".partial")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            torch.save(checkpoint, partial, pickle_module=pickling(self.start))
            partial.replace(self._file)
        except (OSError, RuntimeError) as error:
            _remove(partial)
            self.remarks.add(f"The checkpoint {self._file} cannot be written ({reason_of(error)}).")

    def finish(self, comparison: Comparison, unmet: NDArray[np.bool_], aligned: bool) -> None:
        """End a pass: keep a checkpoint of the traces that a higher limit would continue, and no other.

        Args:
            comparison: The methods.
            unmet: The traces that end at the limit without having met the criterion, `[methods, orderings]`.
            aligned: Whether the methods are at the last evaluation.
        """
        keep = bool(unmet.any()) and aligned
        if keep:
            self.save(comparison, unmet)
        for file in (self._file, self._continued):
            if file is not None and not (keep and file == self._file):
                _remove(file)
        for file in self._files():
            if file != self._file and self._is_of_no_use(self._read(file, mmap=True)):
                _remove(file)

    def _is_of_no_use(self, checkpoint: dict[str, Any]) -> bool:
        """Say whether the traces of a checkpoint have all been finished beyond it."""
        keys = {
            TraceKey(self.stream, digest.partition("-")[0], ordering)
            for digest, found in checkpoint.get("methods", {}).items()
            for ordering in found["recorded"]
        }
        stored = self.traces.ledger.read(keys)
        beyond = (not trace.open and len(trace.correct) > checkpoint["evaluations"] for trace in stored.values())
        return bool(keys) and len(stored) == len(keys) and all(beyond)


def _remove(file: Path) -> None:
    with suppress(OSError):
        file.unlink(missing_ok=True)
