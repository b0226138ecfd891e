"""The mirror of a comparison in Weights & Biases."""

import os
from collections.abc import Mapping, Sequence
from inspect import Parameter, signature
from pathlib import Path
from pydoc import locate
from typing import Any

import numpy as np
from lightning.pytorch.loggers import WandbLogger
from numpy.typing import NDArray

from headstart.metrics.sample_efficiency.curves import Curves
from headstart.metrics.sample_efficiency.scores import median_interval, t_interval
from headstart.modules.method_contract import BASELINE
from headstart.output.dashboard import (
    LONGEST,
    LONGEST_TAG,
    Mode,
    RunRecord,
    begin_run,
    log_files,
    require_wandb,
    variable_decides,
)
from headstart.output.errors import UserError

# Rows of a chart that the dashboard draws.
LONGEST_CHART = 10_000


class DashboardLogger(WandbLogger):
    """Mirrors a comparison in Weights & Biases, against samples seen; docs/dashboard.md says what is logged where.

    Args:
        project: Project in the dashboard.
        entity: User or team that owns the project; the account's default where it is not given.
        name: Name of the run; by default the data set, the backbone, its weights, the methods with the hyperparameters
            that differ from their defaults, the batch size, the seed, and the digest of the group.
        group: Group of runs in the dashboard; by default the data set, the backbone and its weights, and a digest of
            all other options but seed and orderings: runs of one group are of one setting, unless code or photos
            changed between them.
        tags: Tags of the run; by default the data set, the backbone, its weights, the batch size and the sweep.
        mode: `auto` logs online where an API key is set up and the server answers, and offline elsewhere; the
            environment variable WANDB_MODE wins over it.
        save_dir: Folder of the dashboard's own files; by default `trainer.default_root_dir`.
        log_again: Log results again that were logged before, such as after the loss of their offline folder.
    """

    def __init__(
        self,
        project: str = "headstart",
        entity: str | None = None,
        name: str | None = None,
        group: str | None = None,
        tags: list[str] | None = None,
        mode: Mode = "auto",
        save_dir: str | None = None,
        log_again: bool = False,
    ) -> None:
        require_wandb("trainer.logger")
        variable_decides()
        self.mode, self.log_again = mode, log_again
        super().__init__(
            project=project,
            entity=entity,
            name=name,
            group=group,
            tags=tags,
            job_type="comparison",
            save_dir=save_dir,  # type: ignore[arg-type]  # none until `fill_in`
        )
        # The base class passes on this setting, which wandb has deprecated.
        self._wandb_init.pop("anonymous", None)
        self._folder, self._setting = save_dir, group or ""
        self._sweep: Mapping[str, Any] = {}

    def fill_in(self, defaults: Mapping[str, Any], sweep: Mapping[str, Any] = {}) -> None:
        """Fill in missing options before the run begins.

        Args:
            defaults: Name, group, tags and notes of the run, and `dir`, the folder of its results.
            sweep: Values of a sweep's file: its name as `sweep`, its `parameters`, its `project` and `entity`.
        """
        self._folder, self._setting, self._sweep = defaults["dir"], defaults["group"], sweep
        self._wandb_init |= {key: self._wandb_init.get(key) or value for key, value in defaults.items()}
        if "sweep" in sweep:
            self._wandb_init["tags"] = [*self._wandb_init["tags"], sweep["sweep"][:LONGEST_TAG]]
        # Like an agent of W&B, a sweep overrides these options of the logger.
        self._wandb_init |= {key: sweep[key] for key in ("project", "entity") if key in sweep}
        self._name, self._save_dir = self._wandb_init["name"], self._wandb_init["dir"]
        self._project = self._wandb_init["project"]

    @property
    def experiment(self) -> Any:  # noqa: ANN401 - wandb's run, which is not imported where nothing is logged
        """The run; None until `log_hyperparams` begins it, so that a comparison that cannot start leaves none."""
        return self._experiment

    def is_published(self, params: Mapping[str, Any]) -> bool:
        """Return whether these results were logged to their end, and need not be logged again.

        Args:
            params: As for `log_hyperparams`.
        """
        return self._record(params).is_published and not self.log_again

    def _record(self, params: Mapping[str, Any]) -> RunRecord:
        place = {key: self._wandb_init.get(key) for key in ("project", "entity")}
        return RunRecord(Path(self._folder or "."), [place, params.get("run", {}).get("key")])

    def log_hyperparams(self, params: Any) -> None:  # noqa: ANN401 - as in the base class
        """Begin the run, or continue that of an interrupted command, and make samples seen the x axis.

        Args:
            params: The configuration, nested, and what else a reader of the run should know, as `run`.
        """
        import wandb

        # The base class would begin the run with the optimiser's steps as the x axis of everything.
        self.record = self._record(params)
        try:
            Path(self._wandb_init["dir"]).mkdir(parents=True, exist_ok=True)
            run = self._experiment = self._experiment or begin_run(
                self.mode, {**self._wandb_init, **self.record.options()}
            )
        except wandb.Error as error:
            reason = str(error).partition("\n")[0]
            raise UserError(
                f"trainer.logger: Weights & Biases cannot start a run ({reason}); wandb login, or mode=offline"
            ) from error
        self.record.store(run)
        # An agent of W&B gives a run its parameters itself.
        sweep = self._sweep.get("sweep", os.environ.get("WANDB_SWEEP_ID"))
        parameters = {**self._sweep.get("parameters", {}), **({} if sweep is None else {"sweep": sweep})}
        # A continued run may have another commit or number of processes.
        run.config.update({**params, **parameters}, allow_val_change=True)

        # One chart of all methods is drawn at the end, so that those of single methods are not shown by themselves.
        run.define_metric("samples_seen", hidden=True)
        for name, summary in (("val", "max"), ("band", "none"), ("reached", "last")):
            run.define_metric(f"{name}/*", step_metric="samples_seen", summary=summary, hidden=True)
        for name in (BASELINE, *(params.get("model", {}).get("methods") or {})):
            run.define_metric(f"{name}/*", step_metric="samples_seen")

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Log one evaluation; the step is among the metrics, as `samples_seen`.

        Args:
            metrics: Values by name.
            step: Without effect.
        """
        super().log_metrics(metrics)

    def publish(self, document: dict[str, Any], curves: Curves, files: list[Path]) -> None:
        """Log the scores, charts, tables, pictures and files, and finish the run.

        Args:
            document: The content of `results.json`.
            curves: The traces.
            files: The files of the results.
        """
        run = self.experiment
        run.summary.update(_summary(document))
        if document["complete"]:
            run.log(_charts(curves))
        tables = {"results": _table_of_methods(document, self._setting)}
        log_files(run, "results", f"seed {document['protocol']['seed']}, {self._setting}", tables, files)
        self.record.store(run, is_published=document["complete"])
        run.finish(exit_code=0 if document["complete"] else 1)


def _charts(curves: Curves) -> dict[str, Any]:
    """Return charts with one line for each method: the mean accuracy, and the share that met the criterion."""
    import wandb

    # NaN where an ordering has ended: a mean over the others would be of other orderings.
    lines = {} if curves.is_lazy else {"learning_curves": ("accuracy", curves.accuracy.mean(1))}
    met_at = curves.samples_to_criterion()[0][..., None]
    lines["criterion_reached"] = ("share of orderings that met the criterion", (met_at <= curves.samples_seen).mean(1))

    every = -(-len(curves.samples_seen) * len(curves.methods) // LONGEST_CHART)
    charts = {}
    for name, (title, values) in lines.items():
        kept = [np.flatnonzero(np.isfinite(row))[::every] for row in values]
        charts[f"charts/{name}"] = wandb.plot.line_series(
            [curves.samples_seen[indices].tolist() for indices in kept],
            [row[indices].tolist() for row, indices in zip(values, kept, strict=True)],
            keys=list(curves.methods),
            title=title,
            xname="samples seen",
            # The tables behind the charts get a section of their own.
            split_table=True,
        )
    return charts


def _summary(document: dict[str, Any]) -> dict[str, Any]:
    """Return the scores of every method under `samples_to_criterion/<method>` and `relative_improvement/<method>`.

    The number of orderings and standard errors are among them, by which the dashboard can weight runs.
    """
    summary = {key: document[key] for key in ("complete", "stopped_because", "restricted_at")}
    summary["warnings"] = " ".join(document.get("warnings", []))
    summary |= {key: value for key, value in document.get("times", {}).items() if key.endswith("_traces")}
    limit = document["restricted_at"]
    restricted: dict[str, NDArray[np.float64]] = {}
    for name, scores in document["methods"].items():
        reached = np.array([np.inf if each is None else each for each in scores["samples_to_criterion"]], float)
        restricted[name] = np.minimum(reached, limit)

        low, high = map(_finite, median_interval(reached))
        values = {
            **{key: scores[key] for key in ("median", "restricted_mean", "reached")},
            **_uncertainty(restricted[name], t_interval(restricted[name])),
            "median_low": low,
            "median_high": high,
        }
        summary |= {f"samples_to_criterion/{name}/{key}": value for key, value in values.items()}

    for name, comparison in document["comparisons"].items():
        percent = comparison["relative_improvement_percent"]
        # Residuals of the ratio of the means, by the delta method.
        residuals = restricted[name] - (1 - percent / 100) * restricted[BASELINE]
        values = {"percent": percent, "p_value_holm": comparison["p_value_holm"]}
        values |= _uncertainty(100 * residuals / restricted[BASELINE].mean(), comparison["ci95"])
        summary |= {f"relative_improvement/{name}/{key}": value for key, value in values.items()}
    return summary


def _uncertainty(values: NDArray[np.float64], interval: Sequence[float | None]) -> dict[str, Any]:
    """Return the number of values, the standard error of their mean and an interval; None for unknown numbers."""
    count = len(values)
    error = float(values.std(ddof=1)) / count**0.5 if count > 1 else None
    low, high = map(_finite, interval)
    return {"n": count, "standard_error": error, "low": low, "high": high}


def _finite(end: float | None) -> float | None:
    return None if end is None or not np.isfinite(end) else end


def _table_of_methods(document: dict[str, Any], setting: str) -> tuple[list[str], list[list[Any]]]:
    """Return a table with one row per method, which reports can sort, and group over the runs of a project."""
    budgets = list(document["methods"][BASELINE].get("accuracy_at", {}))
    columns = ["setting", "seed", "method", "orderings", "reached", "median", "restricted mean", "restricted at"]
    columns += ["improvement %", "improvement low", "improvement high", "p", *(f"accuracy at {at}" for at in budgets)]

    rows = []
    for name, scores in document["methods"].items():
        compared = document["comparisons"].get(name, {})
        counts = [len(scores["samples_to_criterion"]), scores["reached"], scores["median"], scores["restricted_mean"]]
        improvement = [compared.get("relative_improvement_percent"), *compared.get("ci95", (None, None))]
        accuracies = [_mean(scores["accuracy_at"].get(at)) for at in budgets]
        row = [setting, document["protocol"]["seed"], name, *counts, document["restricted_at"], *improvement]
        rows.append([*row, compared.get("p_value_holm"), *accuracies])
    return columns, rows


def _mean(values: list[float | None] | None) -> float | None:
    """Return the mean of accuracies; None where one of them is not known."""
    return None if not values or None in values else float(np.mean(np.array(values, float)))


def describe_run(config: Any, dataset: str, weights: str, comparison: str) -> dict[str, Any]:  # noqa: ANN401 - a namespace of options
    """Return the defaults of a run's name, group, tags and notes.

    Args:
        config: The options of `headstart train`.
        dataset: Name of the data set.
        weights: The backbone's weights: their name, or a file.
        comparison: Digest of the options that the runs of a group have in common.

    Returns:
        Name, group, tags and notes, shortened to the lengths that the dashboard accepts.
    """
    stream, criterion = config.data.init_args, config.criterion
    backbone = stream.backbone.name
    weights, batch = Path(weights).stem, f"batch {stream.batch_size}"
    setting, rest = f"{dataset}, {backbone}, {weights}", f"{batch}, seed {config.seed_everything}, {comparison}"

    every = {BASELINE: config.model.baseline, **(config.model.methods or {})}
    changed = {name: _changed_options(options) for name, options in every.items()}
    shown = [name + f"({', '.join(own)})" * bool(own) for name, own in changed.items() if own or name != BASELINE]
    methods = " + ".join(shown) or "baseline alone"
    room = LONGEST - len(f"{setting}, , {rest}")
    methods = methods if len(methods) <= room else f"{methods[: max(room - 1, 0)]}…"

    return {
        "name": f"{setting}, {methods}, {rest}"[:LONGEST],
        "group": f"{setting[: LONGEST - len(comparison) - 2]}, {comparison}",
        "tags": [tag[:LONGEST_TAG] for tag in (dataset, backbone, weights, batch)],
        "notes": f"{' + '.join(every)} on {dataset}, {backbone} ({weights}), {stream.orderings} orderings of up to "
        f"{stream.max_samples} samples. Criterion: {criterion.threshold} {criterion.measure} in "
        f"{criterion.consecutive} evaluations in a row.",
    }


def _changed_options(options: Any) -> list[str]:  # noqa: ANN401 - a namespace of options
    """Return the hyperparameters of a method that differ from the defaults of its class, such as `rate=0.2`."""
    kind, arguments = locate(str(getattr(options, "class_path", ""))), getattr(options, "init_args", None)
    if not callable(kind) or arguments is None:
        return []
    defaults = {name: each.default for name, each in signature(kind).parameters.items()}

    changed = []
    for name, value in vars(arguments).items():
        if hasattr(value, "class_path"):
            changed += [f"{name}.{each}" for each in _changed_options(value)]
        elif value != defaults.get(name, Parameter.empty):
            changed.append(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}")
    return changed
