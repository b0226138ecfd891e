"""Checkpoints: states of methods on disk, from which traces that were cut off continue."""

import io
import pickle
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
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
from headstart.modules.state_pickling import pickling, sharing_problem, storage_problem
from headstart.output.errors import reason_of
from headstart.output.files import remove_partial, replacing
from headstart.output.printable import say
from headstart.store.json_digest import digest_of
from headstart.store.ledger_file import TraceKey
from headstart.store.sealed_files import SealError, read_content, read_head, seal
from headstart.store.user_key import UserKeyError, user_key

FOLDER = "checkpoints"
# A killed process repeats the work of this time, or of more if writing would take more than this share of the time.
SECONDS_BETWEEN = 2.0
SHARE = 0.1
# Unpickling depends on these, too; sources of methods and the version of torch are part of the traces' keys.
MADE_BY = {"format": 5, "lightning": lightning.__version__}


@dataclass(frozen=True)
class Pass:
    """One pass over the stream: what is fed side by side, and where it begins.

    Attributes:
        fed: The traces, `[methods, orderings]`.
        measured: Traces of them that are missing; the others are fed because the state of a method is that of all of
            its orderings together.
        known: The counts up to where they begin, `[evaluations, methods, orderings]`; None at the beginning.
        states: The states of their methods then, by the methods' names; none at the beginning.
        file: The checkpoint that has these states; None at the beginning.
    """

    fed: NDArray[np.bool_]
    measured: NDArray[np.bool_]
    known: NDArray[np.int64] | None = None
    states: dict[str, Any] = field(default_factory=dict)
    file: Path | None = None


class Checkpoints:
    """The checkpoints of one comparison's passes, one complete file for each.

    They are written with Python's pickle, which runs code when it is read, so only files are read that this user's key
    seals.

    Args:
        ledger: Folder of the ledger.
        traces: The traces of the comparison.
        methods: Names of its methods.
        start: Where they start.

    Attributes:
        remarks: Why checkpoints could not be stored or read.
    """

    def __init__(self, ledger: Path, traces: Traces, methods: list[str], start: Start) -> None:
        self.folder = ledger / FOLDER
        self.traces, self.methods, self.start = traces, methods, start
        self.stream = traces.keys[0][0].stream
        digests = [keys[0].method for keys in traces.keys]
        # A comparison may contain the same method several times.
        self._digests = [f"{digest}-{digests[:index].count(digest)}" for index, digest in enumerate(digests)]
        self._orderings = np.array([key.ordering for key in traces.keys[0]])
        self.remarks: set[str] = set()
        self._key: bytes | None = None
        self._refused: set[Path] = set()

    def begin(self, claimed: NDArray[np.bool_], most: int) -> Pass:
        """Choose the next pass: one that continues from a checkpoint, else some orderings from the beginning.

        Args:
            claimed: The missing traces that are this process's to measure, `[methods, orderings]`.
            most: Number of orderings that fit side by side.
        """
        first = claimed.copy()
        first[:, np.flatnonzero(claimed.any(0))[most:]] = False
        self._pass, self._continued = Pass(first, first), None
        self._find_key()
        for file in () if self.traces.recompute else self._files():
            # The head alone shows that a checkpoint is of no use here.
            if self._continue(self._read(file, whole=False), claimed) is not None:
                checkpoint = self._read(file, whole=True)
                continued = self._continue(checkpoint, claimed)
                if continued is not None:
                    # States of other methods may be continued later.
                    self._continued = file if len(continued.states) == len(checkpoint["methods"]) else None
                    self._pass = replace(continued, file=file)
                    break

        members = {
            digest: self._orderings[fed].tolist() for digest, fed in zip(self._digests, self._pass.fed, strict=True)
        }
        self._file = self.folder / f"{self.stream[:16]}-{digest_of(members)[:16]}.pt"
        self._due = time.monotonic() + SECONDS_BETWEEN
        return self._pass

    def _find_key(self) -> None:
        try:
            self._key = user_key()
        except UserKeyError as error:
            self.remarks.add(f"A run that is cut off restarts, because checkpoints need a key: {error}.")

    def _files(self) -> list[Path]:
        return [] if self._key is None else sorted(self.folder.glob(f"{self.stream[:16]}-*.pt"))

    def _continue(self, checkpoint: dict[str, Any], claimed: NDArray[np.bool_]) -> Pass | None:
        """Return a pass of the methods of a checkpoint that can continue, None if there is none.

        The missing traces of such a method are claimed, and their counts are those that led to the checkpoint. Without
        the states of the methods, which a checkpoint's head lacks, it is not known whether their source is current.
        """
        if not checkpoint:
            return None
        fed, states = np.zeros_like(claimed), {}
        missing, known = self.traces.missing, self.traces.correct[: checkpoint["evaluations"]].copy()
        for method, (name, digest) in enumerate(zip(self.methods, self._digests, strict=True)):
            saved = checkpoint["methods"].get(digest)
            if saved is None or ("state" in saved and not is_current(saved["state"])):
                continue

            saved_fed, recorded = (np.isin(self._orderings, saved[key]) for key in ("orderings", "recorded"))
            to_measure = saved_fed & missing[method]
            if (
                saved_fed.sum() == len(saved["orderings"])
                and to_measure.any()
                and not (to_measure & ~(recorded & claimed[method])).any()
                and self._has_led_to(saved["counts"], known[:, method, recorded])
            ):
                fed[method], states[name] = saved_fed, saved.get("state")
                # Lazy evaluation may have made earlier evaluations after the checkpoint was written.
                known[:, method, recorded] = saved["counts"]
        return Pass(fed, fed & missing, known, states) if states else None

    @staticmethod
    def _has_led_to(then: NDArray[np.int64], now: NDArray[np.int64]) -> bool:
        """Whether counts agree with later ones, when more may be known."""
        return then.shape == now.shape and bool(np.where(then == SKIPPED, now != NOT_EVALUATED, then == now).all())

    def _read(self, file: Path, whole: bool) -> dict[str, Any]:
        """Read a checkpoint, without the states of the methods unless it is read as a whole.

        It is empty if this user did not write it, if it is damaged, or if another version wrote it.
        """
        assert self._key is not None
        states: dict[str, Any] = {}
        try:
            head, content = read_content(file, self._key) if whole else (read_head(file, self._key), b"")
            checkpoint: dict[str, Any] = pickle.loads(head)
            if checkpoint["made_by"] != MADE_BY or checkpoint["stream"] != self.stream:
                return {}
            if whole:
                states = torch.load(io.BytesIO(content), self._move, pickling(self.start), weights_only=False)
        except FileNotFoundError:
            return {}
        except SealError as error:
            if file not in self._refused:
                say(f"WARNING: The checkpoint {file} is not used ({error}); its part is measured again.")
            self._refused.add(file)
            return {}
        # Classes that have changed may raise anything.
        except Exception as error:
            self.remarks.add(f"The checkpoint {file} cannot be read ({type(error).__name__}: {error}).")
            return {}
        for digest, state in states.items():
            checkpoint["methods"][digest]["state"] = state
        return checkpoint

    def _move(self, storage: Any, device: str) -> Any:  # noqa: ANN401 - torch has two classes of storage
        return storage if device == "cpu" else storage.to(device=torch.device(self.start.device))

    def save_if_due(self, comparison: Comparison) -> None:
        """Write a checkpoint if the last one is some time ago.

        Args:
            comparison: The methods, at the last evaluation.
        """
        # Recomputed traces are not stored before they are finished, so they could not continue.
        if time.monotonic() >= self._due and not self.traces.recompute:
            self.save(comparison, self._pass.measured & self.traces.running)

    def save(self, comparison: Comparison, wanted: NDArray[np.bool_]) -> None:
        """Write a checkpoint; if that fails, there is none.

        Args:
            comparison: The methods, at the last evaluation.
            wanted: The traces that are to be continued, `[methods, orderings]`.
        """
        began = time.monotonic()
        comparison.require_shared_unchanged()
        self.traces.write()

        methods, states = {}, {}
        evaluations = int(self.traces.lengths[wanted].min())
        for name, state in comparison.states().items():
            method, check = self.methods.index(name), comparison.resume_checks[name]
            if reason := storage_problem(state) or sharing_problem(state) or check.problem:
                self.remarks.add(f"{name} cannot be continued where it is cut off ({reason}).")
            elif wanted[method].any() and check.is_checked:
                recorded = self._pass.measured[method]
                methods[self._digests[method]] = {
                    "orderings": self._orderings[self._pass.fed[method]].tolist(),
                    "recorded": self._orderings[recorded].tolist(),
                    "counts": self.traces.correct[:evaluations, method, recorded],
                }
                states[self._digests[method]] = state

        if methods:
            head = {"made_by": MADE_BY, "stream": self.stream, "evaluations": evaluations, "methods": methods}
            self._write(head, states)
        else:
            # Reasons found later hold for an earlier checkpoint, too.
            _remove(self._file)
        self._due = time.monotonic() + max(SECONDS_BETWEEN, (time.monotonic() - began) / SHARE)

    def _write(self, head: dict[str, Any], states: dict[str, Any]) -> None:
        if self._key is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(self._file) as partial:
                torch.save(states, partial, pickle_module=pickling(self.start))
                seal(partial, self._file.name, pickle.dumps(head), self._key)
        except (OSError, RuntimeError) as error:
            self.remarks.add(f"The checkpoint {self._file} cannot be written ({reason_of(error)}).")

    def finish(self, comparison: Comparison, unmet: NDArray[np.bool_], aligned: bool) -> None:
        """End a pass: keep one checkpoint, of the traces that a higher limit would continue.

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
                remove_partial(file)
        for file in self._files():
            if file != self._file and self._is_obsolete(self._read(file, whole=False)):
                _remove(file)

    def _is_obsolete(self, checkpoint: dict[str, Any]) -> bool:
        """Whether the traces of a checkpoint have all been finished beyond it."""
        keys = {
            TraceKey(self.stream, digest.partition("-")[0], ordering)
            for digest, saved in checkpoint.get("methods", {}).items()
            for ordering in saved["recorded"]
        }
        stored = self.traces.ledger.read(keys)
        beyond = (not trace.open and len(trace.correct) > checkpoint["evaluations"] for trace in stored.values())
        return bool(keys) and len(stored) == len(keys) and all(beyond)


def _remove(file: Path) -> None:
    with suppress(OSError):
        file.unlink(missing_ok=True)
