"""The files of a run: results, curves, pictures and the configuration that gives them again."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import lightning
import numpy as np
import torch
import yaml
from lightning.pytorch import Callback, LightningModule, Trainer

from callbacks.sample_efficiency import SampleEfficiency
from metrics.sample_efficiency.curves import Curves
from metrics.sample_efficiency.scores import score
from modules.comparison import Comparison, Snapshot
from output.errors import UserError
from output.files import output_folder, write_together
from output.tables import print_scores
from output.version import git_revision

SCHEMA = 1
RESULTS = "results.json"
CONFIG = "config.yaml"
SEEDS, ORDERINGS = ("seed_everything",), ("seed", "orderings", "first_ordering")


@runtime_checkable
class Publisher(Protocol):
    """A logger that takes a run's results."""

    def publish(self, document: dict[str, Any], files: list[Path]) -> None:
        """Take the content of `results.json` and the run's files, and end the run's log."""


class Results(Callback):
    """Writes a run's files into `trainer.default_root_dir` when it ends or is cut off.

    A folder with results of the same configuration is written again; one with those of another is refused. Without
    a folder the run gets one of its own under `runs`, named by what it compares and a digest of its configuration.

    Args:
        overwrite: Replace results of another configuration that lie in the folder.
    """

    def __init__(self, overwrite: bool = False) -> None:
        self.overwrite = overwrite
        self.criterion: SampleEfficiency
        self.folder: Path
        self.document: dict[str, Any] = {}
        self.config: str
        self.registry: str | None

    def claim(self, folder: Path, config: str, criterion: SampleEfficiency) -> None:
        """Check the folder before anything is computed.

        Args:
            folder: Where the files are to be written.
            config: The whole configuration, YAML.
            criterion: The callback that holds the traces.

        Raises:
            UserError: The folder cannot be written, or holds results of another configuration.
        """
        self.folder = output_folder("trainer.default_root_dir", folder)
        self.config, self.criterion, self.registry = config, criterion, _registry_digest(config)
        self.started = time.perf_counter()
        self.written = False
        saved = folder / CONFIG
        if self.overwrite or not (folder / RESULTS).exists():
            return
        same = saved.exists() and _essence(saved.read_text()) == _essence(config)
        if not same or (self.registry is not None and self.registry != _registry_of(folder / RESULTS)):
            raise UserError(
                f"trainer.default_root_dir: {str(folder)!r} holds results of another configuration; choose another "
                "folder, or replace them with --results.overwrite=true"
            )

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Log the whole configuration, once the data is known to be there."""
        for logger in trainer.loggers:
            logger.log_hyperparams(yaml.safe_load(self.config))

    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write the files of a run that came to its end."""
        if self.criterion.evaluations == 0:
            print(f"INCOMPLETE: {self.criterion.stopped_because}, before anything was measured. Nothing is written.")
            return
        self._finish(trainer, pl_module)

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Write what was measured before the run was cut off, marked as incomplete.

        Complete results of the same configuration that lie in the folder are kept instead.
        """
        if self.written or not self.criterion.evaluations:
            return
        if not (self.criterion.complete or self.overwrite) and _is_complete(self.folder / RESULTS):
            print(f"INCOMPLETE: {self.criterion.stopped_because}. The complete results in {self.folder} are kept.")
            return
        self._finish(trainer, pl_module)

    def _finish(self, trainer: Trainer, pl_module: LightningModule) -> None:
        assert isinstance(pl_module, Comparison)
        ended = pl_module.snapshot()
        curves = self._curves(ended)
        document = self._document(trainer, ended, curves)
        paths = self._write(curves, document)
        self.written, self.document = True, document
        for logger in trainer.loggers:
            if isinstance(logger, Publisher):
                logger.publish(document, paths)
        print_scores(document)
        print(f"{'Complete' if self.criterion.complete else 'INCOMPLETE'}: {document['stopped_because']}. Written:")
        print("\n".join(f"  {path}" for path in paths))

    def _curves(self, ended: Snapshot) -> Curves:
        criterion = self.criterion
        return Curves(
            methods=ended.methods,
            orderings=np.array(ended.orderings),
            samples_seen=criterion.samples_seen,
            correct=criterion.correct,
            validation_size=ended.validation_size,
            limit=ended.max_samples if criterion.complete else int(criterion.samples_seen[-1]),
            threshold=criterion.threshold,
            consecutive=criterion.consecutive,
        )

    def _document(self, trainer: Trainer, ended: Snapshot, curves: Curves) -> dict[str, Any]:
        criterion = self.criterion
        return {
            "schema": SCHEMA,
            "complete": criterion.complete,
            "stopped_because": criterion.stopped_because,
            "criterion": {
                "threshold": criterion.threshold,
                "consecutive": criterion.consecutive,
                "required_correct": criterion.required,
            },
            "protocol": {
                **ended.protocol,
                **({} if self.registry is None else {"registry_sha256": self.registry}),
                "evaluate_every": criterion.evaluate_every,
            },
            "evaluations": criterion.evaluations,
            "samples_seen": int(curves.samples_seen[-1]),
            "restricted_at": curves.limit,
            **score(curves.methods, *curves.samples_to_criterion(), curves.accuracy[..., -1], curves.limit),
            "environment": _environment(trainer),
            "times": {"seconds": round(time.perf_counter() - self.started, 3)},
        }

    def _write(self, curves: Curves, document: dict[str, Any]) -> list[Path]:
        # matplotlib is slow to import.
        from callbacks.plots import draw_criterion_reached, draw_learning_curves
        from output.figures import writers

        text, protocol = json.dumps(document, indent=1, allow_nan=False), document["protocol"]
        fed = f"{protocol['dataset']}: {protocol['backbone']} ({Path(protocol['weights']).name})"
        shown = (curves, f"{fed}, batch size {protocol['batch_size']}", document["complete"])
        return write_together(
            self.folder,
            {
                CONFIG: lambda path: path.write_text(self.config),
                "curves.npz": curves.save,
                **writers("learning_curves", draw_learning_curves(*shown)),
                **writers("criterion_reached", draw_criterion_reached(*shown)),
                RESULTS: lambda path: path.write_text(text),
            },
        )


def _is_complete(results: Path) -> bool:
    return results.exists() and bool(json.loads(results.read_text())["complete"])


def _registry_of(results: Path) -> Any:  # noqa: ANN401 - JSON
    with suppress(ValueError, KeyError, TypeError):
        return json.loads(results.read_text())["protocol"]["registry_sha256"]


def _registry_digest(config: str) -> str | None:
    """Digest the registry that the backbone comes from; None where it comes from none."""
    registry = yaml.safe_load(config).get("data", {}).get("init_args", {}).get("backbone", {}).get("registry")
    # Where it cannot be read, that is said with the option's name when its entry is needed.
    if registry is None or not (path := Path(registry).expanduser()).is_file():
        return None
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _essence(config: str) -> Any:  # noqa: ANN401 - whatever YAML holds
    """Give a configuration without what does not change its results: folders, what is logged, how photos are read."""
    content = yaml.safe_load(config)
    if not isinstance(content, dict):
        return None
    content.pop("results", None)
    for key in ("default_root_dir", "logger", "enable_progress_bar"):
        content["trainer"].pop(key, None)
    for key in ("cache_dir", "num_workers"):
        content["data"].get("init_args", {}).pop(key, None)
    return content


def configuration_digest(config: str, *, over_seeds: bool = False) -> str:
    """Digest a configuration: the same for those that give the same results.

    Args:
        config: The whole configuration, YAML.
        over_seeds: Whether also those that differ in their seed and orderings alone are to have the same.

    Returns:
        Eight hexadecimal digits.
    """
    content, registry = _essence(config), _registry_digest(config)
    if registry is not None:
        content["registry_sha256"] = registry
    if over_seeds:
        for part, keys in ((content, SEEDS), (content.get("data", {}).get("init_args", {}), ORDERINGS)):
            for key in keys:
                part.pop(key, None)
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]


def _environment(trainer: Trainer) -> dict[str, Any]:
    device = trainer.strategy.root_device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "lightning": lightning.__version__,
        "device": f"{device.type} ({name})",
        "git": git_revision(),
    }
