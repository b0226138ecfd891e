"""A run of a comparison: its folder, and the traces that the ledger has of it."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from jsonargparse.typing import PositiveInt
from lightning.pytorch import Callback, Trainer

from headstart.callbacks.run_folder import CONFIG, RunFolder, registry_digest, result_options
from headstart.callbacks.run_ledger import LedgerOptions, record_run
from headstart.callbacks.sample_efficiency import SampleEfficiency
from headstart.callbacks.traces import Traces
from headstart.datamodules.sample_stream import NAMES, SampleStream
from headstart.metrics.sample_efficiency.curves import class_weights
from headstart.metrics.sample_efficiency.result_warnings import PHOTOS
from headstart.metrics.sample_efficiency.scores import ACCURACY_AT
from headstart.modules.comparison import Comparison
from headstart.modules.method_contract import BASELINE
from headstart.modules.provenance import describe_own_class, doubts_about, is_users, provenance, source_digests
from headstart.modules.running_code import is_own
from headstart.output.errors import UserError
from headstart.output.results_folder import FIGURE_FORMATS, FigureFormat
from headstart.output.version import COMPARISON_SCHEMA
from headstart.store.json_digest import digest_of
from headstart.store.ledger import RunLedger
from headstart.store.ledger_file import COMPARISON


class ComparisonRun(LedgerOptions):
    """Writes the files of a run to `trainer.default_root_dir` when it ends or is interrupted.

    The ledger stores the traces; only missing traces are measured. Results of the same configuration are written again,
    those of another configuration are not replaced.
    Without a folder the run gets a new one under `runs`. Its name says what is compared, and has a digest of the
    configuration.

    Args:
        overwrite: Replace results of another configuration in the folder.
        recompute: Measure every trace again, and report traces that differ from the stored ones.
        ledger: Folder of the ledger of traces. The default is the environment variable HEADSTART_LEDGER, or else
            `ledger` beside the run's folder.
        accuracy_at: Numbers of samples at which the accuracy is reported.
        per_class: Also count the correct predictions of each class. A leaderboard needs them for balanced accuracy and
            for the accuracy of each class. Traces without these counts are measured again.
        figure_formats: File formats of the figures, such as '[png, pdf, svg]'.

    Attributes:
        document: Content of results.json, empty until it is written.
        written: The files, `results.json` last.
        remarks: What to print below the table, besides the warnings.
        callbacks: Descriptions by class of the callbacks that are neither the suite's nor Lightning's.
        doubts: Why the code of each method is not known, so that its traces are not stored.
        own_trainer: Builds the trainer of a LightningModule, with some callbacks besides the user's.
        training: Options of that trainer that decide what a module learns.
    """

    own_trainer: Callable[[Sequence[Callback]], Trainer]

    def __init__(
        self,
        overwrite: bool = False,
        recompute: bool = False,
        ledger: str | None = None,
        accuracy_at: list[PositiveInt] = ACCURACY_AT,
        per_class: bool = False,
        figure_formats: list[FigureFormat] = FIGURE_FORMATS,
    ) -> None:
        super().__init__(overwrite, ledger)
        self.recompute = recompute
        self.accuracy_at = accuracy_at
        self.per_class = per_class
        self.figure_formats = figure_formats
        self.document: dict[str, Any] = {}
        self.written: list[Path] = []
        self.remarks: list[str] = []
        self.callbacks: dict[str, dict[str, Any]] = {}
        self.doubts: list[list[str]] = []
        self.training: dict[str, Any] = {}

    @property
    def identity(self) -> str:
        """A digest of everything that decides the files, known once the ledger is open."""
        criterion, grid = self.criterion, self.traces.grid
        decided = {
            "traces": [[key.stream, key.method, key.ordering] for keys in self.traces.keys for key in keys],
            "methods": self.methods,
            "grid": [int(grid.samples_seen[-1]), grid.all_correct, grid.required, grid.consecutive],
            "threshold": criterion.threshold,
            "accuracy_at": self.accuracy_at,
            **({"until": criterion.until} if grid.to_limit else {}),
            **({"per_class": True} if self.per_class else {}),
        }
        return digest_of(decided)

    @property
    def is_known(self) -> bool:
        """Whether these results were written before, and no trace of theirs is missing."""
        return self.identity == self._known and not self.traces.missing.any()

    @property
    def is_repeated(self) -> bool:
        """Whether a run of the very same configuration, loggers included, has written complete results."""
        is_same = self.before.get("complete", False) and self.saved_config == self.folder.config
        return bool(is_same) and not (self.overwrite or self.recompute or self.traces.missing.any())

    def record(self) -> None:
        """Record in the ledger that this run measures its traces."""
        keys = [key for keys in self.traces.keys for key in keys]
        record_run(self.traces.ledger, COMPARISON, self.folder.config, keys)

    def prepare(self, folder: Path, config: str, criterion: SampleEfficiency) -> None:
        """Check the folder before anything is computed.

        Args:
            folder: Where the files are to be written.
            config: The whole configuration, YAML.
            criterion: The callback that measures the traces.

        Raises:
            UserError: The folder cannot be written, or holds results of another configuration; classes cannot be
                counted.
        """
        if self.per_class and criterion.is_lazy:
            raise UserError(
                "results.per_class: true needs every evaluation, but criterion.evaluation=lazy skips most of "
                "them; give --criterion.evaluation=every"
            )
        self.folder = RunFolder(folder, config, self.overwrite)
        self.criterion, self.registry = criterion, registry_digest(config)
        self.started = time.perf_counter()
        saved, self.before = folder / CONFIG, self.folder.document
        self.saved_config = saved.read_text() if saved.exists() else ""
        if not all(isinstance(self.before.get(key), dict) for key in ("methods", "protocol")):
            self.before = {}

        if self.folder.has_results and not self.overwrite:
            same = saved.exists() and result_options(self.saved_config) == result_options(config)
            known = self.before.get("protocol", {}).get("registry_sha256")
            if not same or (self.registry is not None and self.registry != known):
                self.folder.raise_other_results("results of another configuration")

    def describe_methods(self, comparison: Comparison, max_samples: int) -> None:
        """Record the origin of each method, before the files that define it can change.

        Args:
            comparison: The methods, as the configuration gave them.
            max_samples: The sample limit.
        """
        model = yaml.safe_load(self.folder.config)["model"]
        options = {**(model.get("methods") or {}), BASELINE: model["baseline"]}
        self.methods = comparison.names
        self.provenance = [
            {
                **provenance(method, options[name], max_samples),
                **({"trainer": self.training} if name in comparison.own and self.training else {}),
            }
            for name, method in zip(self.methods, comparison, strict=True)
        ]
        every = list(zip(self.methods, comparison, strict=True))
        self.own = [is_users(method, options[name]) for name, method in every]
        self.doubts = [doubts_about(method, options[name]) for name, method in every]

    def describe_callbacks(
        self, callbacks: Sequence[tuple[object, Mapping[str, Any]]], described: dict[str, dict[str, Any]]
    ) -> None:
        """Record the callbacks of the user's own, which may change every trace.

        Args:
            callbacks: The callbacks with their options.
            described: Their descriptions by class.
        """
        self.callbacks = described
        self._add_doubts([doubt for each, options in callbacks for doubt in doubts_about(each, options)])
        if callbacks:
            self.own = [True] * len(self.own)

    def _add_doubts(self, doubts: list[str]) -> None:
        self.doubts = [list(dict.fromkeys(own + doubts)) for own in self.doubts]

    @contextmanager
    def opened(self, stream: SampleStream, comparison: Comparison) -> Iterator[Traces]:
        """Lock the run's folder, open the ledger and look up the traces of the comparison.

        Args:
            stream: The data, set up.
            comparison: The methods.

        Yields:
            The traces.

        Raises:
            UserError: The folder holds results of another origin, another process writes to it, or the ledger cannot be
                used.
        """
        self.stream, self.comparison = stream, comparison
        self._require_same_origin()
        with self.folder.locked(), self.opened_ledger(self.folder.path) as ledger:
            self.traces = self._find_traces(ledger)
            if not self.before:
                self.require_known(self.identity)
            self.criterion.follow(self.traces, self.methods, len(stream.validation_labels))
            yield self.traces

    def _require_same_origin(self) -> None:
        """Raise an error if the same configuration gave results with other code, photos, weights or libraries."""
        if self.overwrite or not self.before:
            return
        current = [*self.stream.protocol().items(), *zip(self.methods, self.provenance, strict=True)]
        current.append(("code of callbacks", self.callbacks))
        if (schema := self.before.get("schema")) != COMPARISON_SCHEMA:
            self.folder.raise_other_results(f"results of schema {schema}, not {COMPARISON_SCHEMA}")
        methods = {name: scores.get("provenance") for name, scores in self.before["methods"].items()}
        previous = methods | self.before["protocol"]
        previous["code of callbacks"] = previous.get("callbacks", {})
        differing = [name for name, value in current if previous.get(name) != value]
        if differing:
            self.folder.raise_other_results(f"results of the same configuration, but of another {', '.join(differing)}")

    def _find_traces(self, ledger: RunLedger) -> Traces:
        criterion, stream = self.criterion, self.stream
        sizes = stream.validation_labels.bincount().numpy(force=True)
        weights = class_weights(sizes, criterion.measure)
        all_correct, self.largest_class = int(weights @ sizes), int((weights * sizes).max())
        self.class_sizes, self.comparison.counts_classes = sizes, self.per_class
        counted: dict[str, Any] = {}
        if criterion.measure != "accuracy":
            counted = {"measure": criterion.measure, "all_correct": all_correct}
            self.comparison.weigh(weights)

        # Traces of lazy evaluation depend on the criterion; those with every evaluation serve it, too.
        options = yaml.safe_load(self.folder.config)["data"]
        custom_stream = describe_own_class(type(stream), options)
        if is_own(type(stream)):
            self.own = [True] * len(self.own)
            self._add_doubts(doubts_about(type(stream), options))
        every = {
            **stream.identity(),
            "code": source_digests([type(stream), Comparison, SampleEfficiency]),
            "evaluate_every": criterion.evaluate_every,
            **counted,
            **({"callbacks": self.callbacks} if self.callbacks else {}),
            **({"data": custom_stream} if custom_stream else {}),
        }
        fed, digest_of_every = every, None
        if criterion.is_lazy:
            fed = {**every, "lazy": {"threshold": criterion.threshold, "consecutive": criterion.consecutive}}
            digest_of_every = None if self.recompute else digest_of(every)
            self.comparison.evaluate_lazily(criterion)

        protocol = stream.protocol()
        photos = {key: protocol[key] for key in PHOTOS if protocol.get(key)}
        description = {**{key: protocol[key] for key in NAMES}, **photos, "largest_class": self.largest_class}
        self.stream_digest = ledger.record(fed, description=description)
        digests = [
            ledger.record(origin, description={"name": name})
            for name, origin in zip(self.methods, self.provenance, strict=True)
        ]
        grid = criterion.grid(stream.max_samples, stream.batch_size, all_correct)
        if not len(grid.samples_seen):
            raise UserError(f"data.order: the stream ends after {stream.max_samples} samples, before any evaluation")
        keys = self.stream_digest, digests, stream.orderings
        classes = sizes if self.per_class else None
        own = {digest for digest, is_users in zip(digests, self.own, strict=True) if is_users}
        unstored = {digest for digest, doubts in zip(digests, self.doubts, strict=True) if doubts}
        return Traces(ledger, *keys, grid, self.recompute, digest_of_every, classes, own, unstored)
