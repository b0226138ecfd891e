"""A run of a comparison: its folder, and its traces in the ledger."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jsonargparse.typing import PositiveInt
from lightning.pytorch import Callback, Trainer

from headstart.callbacks.run_folder import CONFIG, RESULTS, RunFolder, result_options
from headstart.callbacks.run_ledger import LedgerOptions
from headstart.callbacks.sample_efficiency import SampleEfficiency
from headstart.callbacks.traces import Traces
from headstart.datamodules.sample_stream import NAMES, SampleStream
from headstart.metrics.sample_efficiency.curves import class_weights
from headstart.metrics.sample_efficiency.result_warnings import PHOTOS
from headstart.metrics.sample_efficiency.scores import ACCURACY_AT
from headstart.modules.comparison import Comparison
from headstart.modules.method_contract import BASELINE
from headstart.modules.provenance import code_of, describe_method, describe_subclass, doubts_about, has_user_code
from headstart.modules.run_key import RunKey
from headstart.modules.running_code import user_modules
from headstart.output.errors import UserError
from headstart.output.printable import say
from headstart.output.results_folder import FIGURE_FORMATS, FigureFormat
from headstart.output.shipped_files import load_yaml
from headstart.output.version import COMPARISON_SCHEMA
from headstart.store.json_digest import digest_of
from headstart.store.ledger_reader import RunLedger

# Field of `protocol` in results.json: the digest of the stream's part of the keys.
STREAM_DIGEST = "stream_sha256"


class ComparisonRun(LedgerOptions):
    """Writes the files of a run to `trainer.default_root_dir` when it ends or is interrupted.

    The ledger stores the traces, and only missing traces are measured. Results of the same configuration are
    overwritten. Results of another configuration are not. If no folder is given, the run gets a new folder under
    `runs`. The folder's name says what is compared, and contains a digest of the configuration.

    Args:
        overwrite: Replace results of another configuration in the folder.
        recompute: Measure every trace again, and store it in place of the one that the ledger has.
        ledger: Folder of the ledger of traces. The default is the environment variable HEADSTART_LEDGER, or else
            `ledger` beside the run's folder.
        accuracy_at: Numbers of samples at which the accuracy is reported.
        figure_formats: File formats of the figures, such as '[png, pdf, svg]'.

    Attributes:
        document: Content of results.json, empty until it is written.
        callbacks: Descriptions of the user's own callbacks, by class.
        keys: The key of each method.
        has_user_code: Whether code of the user can change the traces of each method.
        doubts: Reasons why the code of each method is not fully known. If there are any, its traces are not stored.
        own_trainer: Builds the trainer of a LightningModule with additional callbacks.
        training: Options of that trainer that can change what a module learns.
    """

    own_trainer: Callable[[Sequence[Callback]], Trainer]

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
        self.callbacks: dict[str, dict[str, Any]] = {}
        self.described: list[dict[str, Any]] = []
        self.code: list[dict[str, str]] = []
        self.has_user_code: list[bool] = []
        self.doubts: list[list[str]] = []
        self.training: dict[str, Any] = {}

    @property
    def identity(self) -> str:
        """A digest of everything that determines the files; it is known once the ledger is open."""
        parts = {
            "options": result_options(self.folder.config),
            "traces": [[key.stream, key.method, key.ordering] for keys in self.traces.keys for key in keys],
            "accuracy_at": self.accuracy_at,
        }
        return digest_of(parts)

    @property
    def is_repeated(self) -> bool:
        """Return whether the folder has complete results of exactly this configuration, including its loggers."""
        is_same = self.before.get("complete", False) and self.saved_config == self.folder.config
        return bool(is_same) and not (self.overwrite or self.recompute or self.traces.missing.any())

    def prepare(self, folder: Path, config: str, criterion: SampleEfficiency) -> None:
        """Check the folder before anything is computed.

        Args:
            folder: Where the files are to be written.
            config: The whole configuration, YAML.
            criterion: The callback that measures the traces.

        Raises:
            UserError: The folder cannot be written, or holds results of another configuration.
        """
        self.folder = RunFolder(folder, config, self.overwrite, COMPARISON_SCHEMA)
        self.criterion, self.before = criterion, self.folder.document
        saved = folder / CONFIG
        self.saved_config = saved.read_text() if saved.exists() else ""
        is_same = self.saved_config and result_options(self.saved_config) == result_options(config)
        if (folder / RESULTS).exists() and not is_same and not self.overwrite:
            self.folder.raise_other_results("results of another configuration")
        if (folder / RESULTS).exists() and not self.before:
            say(f"WARNING: {str(folder / RESULTS)!r} is damaged; it is written again.", sys.stderr)

    def describe_methods(
        self,
        comparison: Comparison,
        max_samples: int,
        callbacks: Sequence[tuple[object, Mapping[str, Any]]] = (),
        described: Mapping[str, Any] = {},
    ) -> None:
        """Record what the methods are, before the files that define them can change.

        Args:
            comparison: The methods, as the configuration gave them.
            max_samples: The sample limit.
            callbacks: The user's own callbacks, which may change every trace, with their options.
            described: Descriptions of these callbacks, by class.
        """
        model = load_yaml(self.folder.config)["model"]
        options = {**(model.get("methods") or {}), BASELINE: model["baseline"]}
        self.methods, self.loaded = comparison.names, user_modules().keys()

        # If any method is a LightningModule, the user's own callbacks act on LightningModules only.
        self.callbacks = {} if comparison.lightning_modules else dict(described)
        doubts = [doubt for each in callbacks for doubt in doubts_about(*each)]
        training = {**self.training, **({"own_callbacks": dict(described)} if described else {})}
        for name, method in zip(self.methods, comparison, strict=True):
            is_module, arguments = name in comparison.lightning_modules, options[name]
            has_callbacks = bool(callbacks) and (is_module or not comparison.lightning_modules)
            trainer = {"trainer": training} if is_module and training else {}
            self.described.append({**describe_method(method, arguments, max_samples), **trainer})
            self.code.append(code_of(method, arguments))
            self.has_user_code.append(has_user_code(method, arguments) or has_callbacks)
            all_doubts = doubts_about(method, arguments) + (doubts if has_callbacks else [])
            self.doubts.append([*dict.fromkeys(all_doubts)])

    @contextmanager
    def opened(self, stream: SampleStream, comparison: Comparison) -> Iterator[Traces]:
        """Lock the run's folder, open the ledger and look up the traces of the comparison.

        Args:
            stream: The data, set up.
            comparison: The methods.

        Yields:
            The traces.

        Raises:
            UserError: The folder has results of other code, data or packages; or another process writes to it; or the
                ledger cannot be used.
        """
        self.stream, self.comparison = stream, comparison
        self.all_correct = self._weigh_classes()
        criterion, stream_half, eager_stream = self.criterion, self._describe_stream(), None
        self.keys = self._build_keys(stream_half)
        if criterion.is_lazy:
            comparison.chooser = criterion
            # Lazy traces are for this criterion alone. Stored traces of every evaluation are used, too.
            eager_stream = None if self.recompute else self.keys[0].trace(0).stream
            lazy = {"threshold": criterion.threshold, "consecutive": criterion.consecutive}
            self.keys = self._build_keys({**stream_half, "lazy": lazy})

        if self.before and not self.overwrite:
            self._require_same()
        with self.folder.locked(), self.opened_ledger(self.folder.path) as ledger:
            self.traces = self._find_traces(ledger, eager_stream)
            criterion.follow(self.traces, self.methods, len(stream.validation_labels))
            yield self.traces

    def _require_same(self) -> None:
        """Raise an error if the folder has results with other keys, such as those of other code, photos or packages."""
        halves = [key.describe() for key in self.keys]
        stream = halves[0]["stream"]
        # Fields of `protocol` that are not part of a key.
        not_in_key = (self.stream.describe().keys() | {STREAM_DIGEST}) - stream.keys()
        now = {**stream, **{name: each["method"] for name, each in zip(self.methods, halves, strict=True)}}
        before = {name: value for name, value in self.before["protocol"].items() if name not in not_in_key}
        before |= {name: scores["key"] for name, scores in self.before["methods"].items()}
        self.folder.require_same(before, now)

    def _weigh_classes(self) -> int:
        """Set the weights of the classes, and return the weighted count if all predictions are correct."""
        sizes = self.stream.validation_labels.bincount().numpy(force=True)
        weights = class_weights(sizes, self.criterion.measure)
        self.largest_class = int((weights * sizes).max())
        if self.criterion.measure != "accuracy":
            self.comparison.weigh(weights)
        return int(weights @ sizes)

    def _describe_stream(self) -> dict[str, Any]:
        """Return the stream's part of the keys: what is fed, and how it is evaluated."""
        kind, options = type(self.stream), load_yaml(self.folder.config)["data"]
        custom_stream = describe_subclass(kind, options)
        if custom_stream:
            self.has_user_code, doubts = [True] * len(self.methods), doubts_about(kind, options)
            self.doubts = [[*dict.fromkeys([*each, *doubts])] for each in self.doubts]
        return {
            **self.stream.decisive(),
            "evaluate_every": self.criterion.evaluate_every,
            "measure": self.criterion.measure,
            "all_correct": self.all_correct,
            **({"callbacks": self.callbacks} if self.callbacks else {}),
            **({"data": custom_stream} if custom_stream else {}),
        }

    def _build_keys(self, stream_half: Mapping[str, Any]) -> list[RunKey]:
        device = self.stream.device.type
        return [RunKey(stream_half, *each, device) for each in zip(self.described, self.code, strict=True)]

    def _find_traces(self, ledger: RunLedger, eager_stream: str | None) -> Traces:
        """Record in the ledger what the keys mean, and look up the traces."""
        stream = self.stream
        grid = self.criterion.grid(stream.max_samples, stream.batch_size, self.all_correct)
        if not len(grid.samples_seen):
            raise UserError(f"data.order: the stream ends after {stream.max_samples} samples, before any evaluation")

        described = stream.describe()
        photos = {key: described[key] for key in PHOTOS if described.get(key)}
        description = {**{key: described[key] for key in NAMES}, **photos, "largest_class": self.largest_class}
        ledger.record(self.keys[0].describe()["stream"], description=description)
        for name, key in zip(self.methods, self.keys, strict=True):
            ledger.record(key.describe()["method"], description={"name": name})

        digests = [key.trace(0) for key in self.keys]
        return Traces(
            ledger,
            digests[0].stream,
            [each.method for each in digests],
            stream.orderings,
            grid,
            recompute=self.recompute,
            loaded=self.loaded,
            eager_stream=eager_stream,
            own={each.method for each, is_own in zip(digests, self.has_user_code, strict=True) if is_own},
            unstored={each.method for each, doubts in zip(digests, self.doubts, strict=True) if doubts},
        )
