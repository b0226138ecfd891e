"""The files of a run: results, curves, pictures and the configuration that gives them again."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import lightning
import numpy as np
import torch
import yaml
from jsonargparse.typing import PositiveInt
from lightning.pytorch import Trainer

from callbacks.checkpoints import Checkpoints
from callbacks.configuration import essence, registry_digest
from callbacks.remarks import remark_on_criterion, remark_on_traces
from callbacks.sample_efficiency import SampleEfficiency
from callbacks.traces import Traces
from datamodules.sample_stream import NAMES, SampleStream
from metrics.sample_efficiency.curves import NOT_EVALUATED, Curves, class_weights
from metrics.sample_efficiency.scores import ACCURACY_AT, score
from modules.comparison import BASELINE, Comparison
from modules.provenance import provenance
from output.errors import UserError
from output.files import alone_in, output_folder, write_together
from output.tables import print_lines, print_scores
from output.version import git_revision
from store.json_digest import digest_of
from store.ledger import Ledger

SCHEMA = 2
RESULTS = "results.json"
CONFIG = "config.yaml"


@runtime_checkable
class Publisher(Protocol):
    """A logger that takes a run's results."""

    def publish(self, document: dict[str, Any], files: list[Path]) -> None:
        """Take the content of `results.json` and the run's files, and end the run's log."""


class Results:
    """Writes a run's files into `trainer.default_root_dir` when it ends or is cut off.

    They are a view of the ledger: only traces that it has not are measured. A folder with results of the same
    configuration is written again; one with those of another is refused. Without a folder the run gets one of its own
    under `runs`, named by what it compares and a digest of its configuration.

    Args:
        overwrite: Replace results of another configuration that lie in the folder.
        recompute: Measure every trace again, and say which come out differently from those that are stored.
        ledger: Folder of the ledger of traces; by default that in the environment variable HEADSTART_LEDGER, else
            `ledger` beside the run's folder.
        accuracy_at: Numbers of samples at which the accuracy is given.
    """

    def __init__(
        self,
        overwrite: bool = False,
        recompute: bool = False,
        ledger: str | None = None,
        accuracy_at: list[PositiveInt] = ACCURACY_AT,
    ) -> None:
        self.overwrite = overwrite
        self.recompute = recompute
        self.ledger_folder = ledger
        self.accuracy_at = accuracy_at
        self.document: dict[str, Any] = {}
        self._lent: Ledger | None = None
        self._known = ""

    def lend(self, ledger: Ledger, known: str) -> None:
        """Take a ledger that is open already, and say which results are known.

        Args:
            ledger: The ledger, in place of one on this machine's disk.
            known: What `identity` was when the run's files were written; empty where they were not.
        """
        self._lent, self._known = ledger, known

    @property
    def identity(self) -> str:
        """A digest of everything that decides the scores, known once the run has begun."""
        criterion, grid = self.criterion, self.traces.grid
        decided = {
            "traces": [[key.stream, key.method, key.ordering] for keys in self.traces.keys for key in keys],
            "methods": self.methods,
            "grid": [int(grid.samples_seen[-1]), grid.all_correct, grid.required, grid.consecutive],
            "threshold": criterion.threshold,
            "accuracy_at": self.accuracy_at,
        }
        return digest_of(decided)

    @property
    def is_known(self) -> bool:
        """Whether these results were written before, and no trace of theirs is missing."""
        return self.identity == self._known and not self.traces.missing.any()

    def claim(self, folder: Path, config: str, criterion: SampleEfficiency) -> None:
        """Check the folder before anything is computed.

        Args:
            folder: Where the files are to be written.
            config: The whole configuration, YAML.
            criterion: The callback that measures the traces.

        Raises:
            UserError: The folder cannot be written, or holds results of another configuration.
        """
        self.folder = output_folder("trainer.default_root_dir", folder)
        self.config, self.criterion, self.registry = config, criterion, registry_digest(config)
        self.started = time.perf_counter()
        saved, self.before = folder / CONFIG, _read(folder / RESULTS)
        if (folder / RESULTS).exists() and not self.overwrite:
            same = saved.exists() and essence(saved.read_text()) == essence(config)
            known = self.before.get("protocol", {}).get("registry_sha256")
            if not same or (self.registry is not None and self.registry != known):
                raise UserError(
                    f"trainer.default_root_dir: {str(folder)!r} holds results of another configuration; choose another "
                    "folder, or replace them with --results.overwrite=true"
                )
        self.stack = ExitStack()

    def describe(self, comparison: Comparison, max_samples: int) -> None:
        """Note what determines each method, before the files that define it can change.

        Args:
            comparison: The methods, as the configuration gave them.
            max_samples: The sample limit.
        """
        model = yaml.safe_load(self.config)["model"]
        options = {**(model.get("methods") or {}), BASELINE: model["baseline"]}
        self.methods = comparison.names
        self.provenance = [
            provenance(method, options[name], max_samples)
            for name, method in zip(self.methods, comparison, strict=True)
        ]

    def begin(self, stream: SampleStream, comparison: Comparison) -> Traces:
        """Look up in the ledger what is there of the comparison, and keep other processes from the run's folder.

        Args:
            stream: What is fed, set up.
            comparison: The methods.

        Returns:
            The traces.

        Raises:
            UserError: The folder holds results of another origin, or another process writes to it.
            LedgerError: The ledger cannot be used.
        """
        self.stream, self.comparison, criterion = stream, comparison, self.criterion
        self._require_same_origin()
        self.stack.enter_context(alone_in("trainer.default_root_dir", self.folder))
        chosen = self.ledger_folder or os.environ.get("HEADSTART_LEDGER") or self.folder.parent / "ledger"
        ledger = self.stack.enter_context(self._lent or Ledger(Path(chosen).expanduser()))
        sizes = stream.validation_labels.bincount().numpy(force=True)
        weights = class_weights(sizes, criterion.measure)
        all_correct, self.largest_class = int(weights @ sizes), int((weights * sizes).max())
        counted: dict[str, Any] = {}
        if criterion.measure != "accuracy":
            counted = {"measure": criterion.measure, "all_correct": all_correct}
            comparison.weigh(weights)
        fed = {**stream.identity(), "evaluate_every": criterion.evaluate_every, **counted}
        told = {**{key: stream.protocol()[key] for key in NAMES}, "largest_class": self.largest_class}
        self.stream_digest = ledger.record(fed, told=told)
        grid = criterion.grid(stream.max_samples, stream.batch_size, all_correct)
        digests = [
            ledger.record(each, told={"name": name}) for name, each in zip(self.methods, self.provenance, strict=True)
        ]
        self.traces = Traces(ledger, self.stream_digest, digests, stream.orderings, grid, self.recompute)
        self.checkpoints = Checkpoints(ledger.folder, self.traces, self.methods, stream.start())
        if not self.before:
            self._require_known()
        criterion.follow(self.traces, self.checkpoints, self.methods, len(stream.validation_labels))
        return self.traces

    def _require_same_origin(self) -> None:
        """Refuse to replace results that the same configuration gave with other code, photos, weights or libraries."""
        if self.overwrite or not self.before:
            return
        ours = [*self.stream.protocol().items(), *zip(self.methods, self.provenance, strict=True)]
        methods = {name: scores.get("provenance") for name, scores in self.before["methods"].items()}
        theirs = methods | self.before["protocol"]
        # Of schema 1 less is known.
        differing = [name for name, value in ours if theirs.get(name) not in (value, None)]
        if differing:
            raise UserError(
                f"trainer.default_root_dir: {str(self.folder)!r} holds results of the same configuration, but of "
                f"another {', '.join(differing)}; choose another folder, or replace them with --results.overwrite=true"
            )

    def _require_known(self) -> None:
        """Refuse to replace results of another origin that lie on another machine, as `_require_same_origin` does."""
        if self._known and self.identity != self._known and not self.overwrite:
            raise UserError(
                "trainer.default_root_dir: the sweep's folder holds results of the same configuration, but of other "
                "code, photos, weights or versions; choose another folder, or give --results.overwrite=true"
            )

    def finish(self, trainer: Trainer) -> None:
        """Write the files, of a run that was cut off only where no complete results of the same lie in the folder.

        Args:
            trainer: The trainer.
        """
        traces = self.traces
        lengths, complete = traces.lengths, not traces.missing.any()
        cut_off = f"INCOMPLETE: {self.criterion.cut_off_because}"
        if not lengths.all():
            print(f"{cut_off}, before every method was measured. Nothing is written.")
            return
        if not (complete or self.overwrite) and self.before.get("complete"):
            print(f"{cut_off}. The complete results in {self.folder} are kept.")
            return
        self.criterion.log_rest(trainer)
        curves = self._curves(complete)
        document = self._document(trainer, complete, curves)
        paths = self._write(curves, document)
        self.document = document
        for logger in trainer.loggers:
            if isinstance(logger, Publisher):
                logger.publish(document, paths)
        print_scores(document)
        print_lines(
            [
                *remark_on_criterion(self.criterion, traces.grid, self.largest_class),
                *remark_on_traces(traces, self.methods, self.comparison.drew),
                *sorted(self.checkpoints.remarks),
            ]
        )
        print(f"{'Complete' if complete else 'INCOMPLETE'}: {document['stopped_because']}. Written:")
        print("\n".join(f"  {path}" for path in paths))

    def close(self) -> None:
        """Let other processes have the folder, and the traces that were not measured."""
        self.stack.close()

    def _curves(self, complete: bool) -> Curves:
        traces, stream = self.traces, self.stream
        ends = traces.grid.samples_seen[traces.lengths - 1]
        return Curves(
            methods=self.methods,
            orderings=np.array(stream.orderings),
            samples_seen=traces.grid.samples_seen[: traces.lengths.max()],
            correct=np.moveaxis(traces.correct[: traces.lengths.max()], 0, -1),
            validation_size=len(stream.validation_labels),
            all_correct=traces.grid.all_correct,
            measure=self.criterion.measure,
            limit=stream.max_samples if complete else int(ends[~traces.met].min(initial=stream.max_samples)),
            threshold=self.criterion.threshold,
            consecutive=self.criterion.consecutive,
        )

    def _document(self, trainer: Trainer, complete: bool, curves: Curves) -> dict[str, Any]:
        criterion, traces = self.criterion, self.traces
        scores = score(curves, self.accuracy_at)
        for method, described, diverged in zip(self.methods, self.provenance, traces.diverged, strict=True):
            at = [None if place == NOT_EVALUATED else int(traces.grid.samples_seen[place]) for place in diverged]
            scores["methods"][method] |= {"diverged_at": at, "provenance": described}
        reason = criterion.cut_off_because
        if complete:
            met = traces.met.all()
            reason = "every method met the criterion in every ordering" if met else "the sample limit was reached"
        return {
            "schema": SCHEMA,
            "complete": complete,
            "stopped_because": reason,
            "criterion": {
                "measure": criterion.measure,
                "threshold": criterion.threshold,
                "consecutive": criterion.consecutive,
                "required_correct": traces.grid.required,
                "all_correct": traces.grid.all_correct,
                "largest_class": self.largest_class,
            },
            "protocol": {
                **self.stream.protocol(),
                **({} if self.registry is None else {"registry_sha256": self.registry}),
                "evaluate_every": criterion.evaluate_every,
                "stream_sha256": self.stream_digest,
            },
            "evaluations": len(curves.samples_seen),
            "samples_seen": int(curves.samples_seen[-1]),
            "restricted_at": curves.limit,
            **scores,
            "environment": {**_environment(trainer), **self.stream.environment()},
            "times": {
                "seconds": round(time.perf_counter() - self.started, 3),
                "computed_traces": int(traces.measured.sum()),
                "reused_traces": int((~traces.measured).sum()),
            },
        }

    def _write(self, curves: Curves, document: dict[str, Any]) -> list[Path]:
        # matplotlib is slow to import.
        from callbacks.plots import draw_criterion_reached, draw_learning_curves
        from output.figures import writers

        text, protocol = json.dumps(document, indent=1, allow_nan=False), document["protocol"]
        fed = f"{protocol['dataset']}: {protocol['backbone']} ({Path(protocol['weights']).name})"
        shown = (curves, f"{fed}, batch size {protocol['batch_size']}", document["complete"])
        files: dict[str, Callable[[Path], object]] = {
            CONFIG: lambda path: path.write_text(self.config),
            "curves.npz": curves.save,
            **writers("learning_curves", draw_learning_curves(*shown)),
            **writers("criterion_reached", draw_criterion_reached(*shown)),
            RESULTS: lambda path: path.write_text(text),
        }
        try:
            return write_together(self.folder, files)
        except OSError as error:
            raise UserError(
                f"trainer.default_root_dir: {str(self.folder)!r} cannot be written ({error}); the traces are in the "
                "ledger, so make room and give the same command"
            ) from error


def _read(results: Path) -> dict[str, Any]:
    """Read the results that lie in a folder; nothing where there are none, or damaged ones."""
    with suppress(OSError, ValueError):
        document = json.loads(results.read_text())
        if isinstance(document, dict) and all(isinstance(document.get(key), dict) for key in ("methods", "protocol")):
            return document
    return {}


def _environment(trainer: Trainer) -> dict[str, Any]:
    device = trainer.strategy.root_device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "lightning": lightning.__version__,
        "device": f"{device.type} ({name})",
        # What decides how sums are rounded on a processor.
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "git": git_revision(),
    }
