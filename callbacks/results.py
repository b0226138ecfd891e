"""The files of a run: results, curves, pictures and the configuration that gives them again."""

from __future__ import annotations

import platform
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import lightning
import numpy as np
import torch
import yaml
from jsonargparse.typing import PositiveInt
from lightning.pytorch import Trainer
from numpy.typing import NDArray

from headstart.callbacks.checkpoints import Checkpoints
from headstart.callbacks.configuration import essence, registry_digest
from headstart.callbacks.ledger_results import LedgerResults
from headstart.callbacks.remarks import remark_on_criterion, remark_on_traces
from headstart.callbacks.run_files import CONFIG, RESULTS, read_document, write_run
from headstart.callbacks.sample_efficiency import SampleEfficiency
from headstart.callbacks.traces import Traces
from headstart.datamodules.sample_stream import NAMES, SampleStream
from headstart.metrics.sample_efficiency.curves import NOT_EVALUATED, Curves, class_weights
from headstart.metrics.sample_efficiency.scores import ACCURACY_AT, score
from headstart.modules.comparison import Comparison
from headstart.modules.method_contract import BASELINE
from headstart.modules.provenance import provenance
from headstart.output.errors import UserError
from headstart.output.files import alone_in, output_folder
from headstart.output.printable import print_lines, say
from headstart.output.results_folder import FIGURE_FORMATS, FigureFormat
from headstart.output.tables import print_scores
from headstart.output.version import git_revision
from headstart.store.json_digest import digest_of

SCHEMA = 2


@runtime_checkable
class Publisher(Protocol):
    """A logger that takes a run's results."""

    def publish(self, document: dict[str, Any], files: list[Path]) -> None:
        """Take the content of `results.json` and the run's files, and end the run's log."""


class Results(LedgerResults):
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
        figure_formats: File formats of the figures, such as '[png, pdf, svg]'.
    """

    def __init__(
        self,
        overwrite: bool = False,
        recompute: bool = False,
        ledger: str | None = None,
        accuracy_at: list[PositiveInt] = ACCURACY_AT,
        figure_formats: list[FigureFormat] = FIGURE_FORMATS,
    ) -> None:
        super().__init__(overwrite, ledger)
        self.recompute = recompute
        self.accuracy_at = accuracy_at
        self.figure_formats = figure_formats
        self.document: dict[str, Any] = {}

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
        saved, self.before = folder / CONFIG, read_document(folder / RESULTS)
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
        ledger = self.stack.enter_context(self.open_ledger(self.folder))
        sizes = stream.validation_labels.bincount().numpy(force=True)
        weights = class_weights(sizes, criterion.measure)
        all_correct, self.largest_class = int(weights @ sizes), int((weights * sizes).max())
        counted: dict[str, Any] = {}
        if criterion.measure != "accuracy":
            counted = {"measure": criterion.measure, "all_correct": all_correct}
            comparison.weigh(weights)
        every = {**stream.identity(), "evaluate_every": criterion.evaluate_every, **counted}
        lazily = {"lazy": {"threshold": criterion.threshold, "consecutive": criterion.consecutive}}
        fed = {**every, **lazily} if criterion.is_lazy else every
        told = {**{key: stream.protocol()[key] for key in NAMES}, "largest_class": self.largest_class}
        self.stream_digest = ledger.record(fed, told=told)
        grid = criterion.grid(stream.max_samples, stream.batch_size, all_correct)
        digests = [
            ledger.record(each, told={"name": name}) for name, each in zip(self.methods, self.provenance, strict=True)
        ]
        whole = digest_of(every) if criterion.is_lazy and not self.recompute else None
        self.traces = Traces(ledger, self.stream_digest, digests, stream.orderings, grid, self.recompute, whole)
        if criterion.is_lazy:
            comparison.evaluate_lazily(criterion)
        self.checkpoints = Checkpoints(ledger.folder, self.traces, self.methods, stream.start())
        if not self.before:
            self.require_known(self.identity)
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

    def finish(self, trainer: Trainer) -> None:
        """Write the files, of a run that was cut off only where no complete results of the same lie in the folder.

        Args:
            trainer: The trainer.
        """
        traces = self.traces
        measured, complete = np.all(traces.lengths > 0, axis=0), not traces.missing.any()
        cut_off = "a mistake ended it" if self.criterion.is_mistaken else self.criterion.cut_off_because
        if not measured.any():
            say(f"INCOMPLETE: {cut_off}, before every method was measured. Nothing is written.")
            return
        if not (complete or self.overwrite) and self.before.get("complete"):
            say(f"INCOMPLETE: {cut_off}. The complete results in {self.folder} are kept.")
            return
        self.criterion.log_rest(trainer)
        curves = self._curves(complete, measured)
        document = self._document(trainer, complete, curves, traces.diverged[:, measured])
        paths = write_run(self.folder, self.config, curves, document, self.figure_formats)
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
        if not measured.all():
            say(f"Of {len(measured)} orderings, only {measured.sum()} are in the results; the same command goes on.")
        ended = f"Complete: {document['stopped_because']}" if complete else f"INCOMPLETE: {cut_off}"
        say(f"{ended}. Written:")
        for path in paths:
            say(f"  {path}")

    def close(self) -> None:
        """Let other processes have the folder, and the traces that were not measured."""
        self.stack.close()

    def _curves(self, complete: bool, measured: NDArray[np.bool_]) -> Curves:
        """Give the traces of the orderings in which every method was measured, `[orderings]`."""
        traces, stream = self.traces, self.stream
        lengths, met = traces.lengths[:, measured], traces.met[:, measured]
        ends = traces.grid.samples_seen[lengths - 1]
        return Curves(
            methods=self.methods,
            orderings=np.array(stream.orderings)[measured],
            samples_seen=traces.grid.samples_seen[: lengths.max()],
            correct=np.moveaxis(traces.correct[: lengths.max(), :, measured], 0, -1),
            validation_size=len(stream.validation_labels),
            all_correct=traces.grid.all_correct,
            measure=self.criterion.measure,
            limit=stream.max_samples if complete else int(ends[~met].min(initial=stream.max_samples)),
            threshold=self.criterion.threshold,
            consecutive=self.criterion.consecutive,
        )

    def _document(
        self, trainer: Trainer, complete: bool, curves: Curves, diverged_at: NDArray[np.int64]
    ) -> dict[str, Any]:
        criterion, traces = self.criterion, self.traces
        scores = score(curves, self.accuracy_at)
        for method, described, diverged in zip(self.methods, self.provenance, diverged_at, strict=True):
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
                "evaluation": "lazy" if criterion.is_lazy else "every",
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
