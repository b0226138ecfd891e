"""The mirror of a run in Weights & Biases."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lightning.pytorch.loggers import WandbLogger
from numpy.typing import NDArray
from scipy import stats

from headstart.metrics.sample_efficiency.scores import median_interval, t_interval
from headstart.modules.method_contract import BASELINE
from headstart.output.dashboard import Mode, begin_run, log_files, require_wandb, variable_decides
from headstart.output.errors import UserError

# The longest names and groups, and the longest tags, that the dashboard accepts.
LONGEST, LONGEST_TAG = 128, 64


class DashboardLogger(WandbLogger):
    """Mirrors a comparison in Weights & Biases, against samples seen.

    Args:
        project: Project in the dashboard.
        entity: User or team that owns the project; the account's default where it is not given.
        name: Name of the run; by default the backbone, its weights, the methods, the batch size and the seed.
        group: Group of runs in the dashboard; by default the data set, the backbone and its weights, and a digest of
            all else but seed and orderings: runs of one group differ in nothing that is compared.
        tags: Tags of the run; by default the data set, the backbone, its weights and the batch size.
        mode: `auto` logs online where an API key is set up and the server answers, and offline elsewhere; the
            environment variable WANDB_MODE wins over it.
        save_dir: Folder of the dashboard's own files; by default `trainer.default_root_dir`.
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
    ) -> None:
        require_wandb("trainer.logger")
        variable_decides()
        self.mode = mode
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

    def fill_in(self, defaults: Mapping[str, Any], sweep: Mapping[str, str] = {}) -> None:
        """Fill in missing options before the run begins.

        Args:
            defaults: Name, group and tags of the run, and `dir`, the folder of the dashboard's own files.
            sweep: Values of a sweep's file: `group`, in place of the default one, `project` and `entity`.
        """
        if "group" in sweep:
            defaults = {**defaults, "group": sweep["group"][:LONGEST]}
        self._wandb_init |= {key: self._wandb_init[key] or value for key, value in defaults.items()}
        # Like an agent of W&B, a sweep overrides these options of the logger.
        self._wandb_init |= {key: sweep[key] for key in ("project", "entity") if key in sweep}
        self._name, self._save_dir = self._wandb_init["name"], self._wandb_init["dir"]
        self._project = self._wandb_init["project"]

    @property
    def experiment(self) -> Any:  # noqa: ANN401 - wandb's run, which is not imported where nothing is logged
        """The run; None until `log_hyperparams` begins it, so that a comparison that cannot start leaves none."""
        return self._experiment

    def log_hyperparams(self, params: Any) -> None:  # noqa: ANN401 - as in the base class
        """Log the whole configuration once, and make samples seen the x axis.

        Args:
            params: The configuration, nested.
        """
        import wandb

        # The base class would begin the run with the optimiser's steps as the x axis of everything. Where two patterns
        # match a name, it is undefined which one counts.
        try:
            Path(self._wandb_init["dir"]).mkdir(parents=True, exist_ok=True)
            run = self._experiment = self._experiment or begin_run(self.mode, self._wandb_init)
        except wandb.Error as error:
            reason = str(error).splitlines()[0]
            raise UserError(
                f"trainer.logger: Weights & Biases cannot start a run ({reason}); wandb login, or mode=offline"
            ) from error
        run.config.update(params)
        run.define_metric("samples_seen")
        run.define_metric("val/*", step_metric="samples_seen", summary="max")
        run.define_metric("reached/*", step_metric="samples_seen", summary="last")

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Log one evaluation; the step is among the metrics, as `samples_seen`.

        Args:
            metrics: Values by name.
            step: Without effect.
        """
        super().log_metrics(metrics)

    def publish(self, document: dict[str, Any], files: list[Path]) -> None:
        """Log the scores, the table of orderings, the pictures and the files, and finish the run."""
        run = self.experiment
        run.summary.update(_summary(document))
        log_files(run, "results", {"orderings": _table(document)}, files)
        run.finish(exit_code=0 if document["complete"] else 1)


def _summary(document: dict[str, Any]) -> dict[str, Any]:
    """Return the scores of every method under `samples_to_criterion/<method>` and `relative_improvement/<method>`.

    The number of orderings and standard errors are among them, by which the dashboard can weight runs.
    """
    summary = {"complete": document["complete"], "stopped_because": document["stopped_because"]}
    summary["warnings"] = " ".join(document.get("warnings", []))
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
            **_share_reached(scores["reached"], len(reached)),
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


def _share_reached(reached: int, count: int) -> dict[str, float]:
    """Return the share of orderings that met the criterion, its standard error and its 95 % Wilson interval."""
    share, interval = reached / count, stats.binomtest(reached, count).proportion_ci(0.95, method="wilson")
    return {
        "reached_share": share,
        "reached_share_standard_error": (share * (1 - share) / count) ** 0.5,
        "reached_share_low": float(interval.low),
        "reached_share_high": float(interval.high),
    }


def _table(document: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Return a table with one row per ordering: its number, then samples to criterion and onset of every method."""
    columns = ["ordering"]
    values: list[list[int | None]] = []
    for name, scores in document["methods"].items():
        columns += [f"{name}: samples to criterion", f"{name}: onset"]
        values += [scores["samples_to_criterion"], scores["onset"]]
    first = document["protocol"]["first_ordering"]
    return columns, [[first + i, *row] for i, row in enumerate(zip(*values, strict=True))]


def describe_run(config: Any, dataset: str, weights: str, comparison: str) -> dict[str, Any]:  # noqa: ANN401 - a namespace of options
    """Return the defaults of a run's name, group and tags.

    Args:
        config: The options of `headstart train`.
        dataset: Name of the data set.
        weights: The backbone's weights: their name, or a file.
        comparison: Digest of the options that the runs of a group have in common.

    Returns:
        Name, group and tags, shortened to the lengths that the dashboard accepts.
    """
    stream = config.data.init_args
    backbone = stream.backbone.name
    weights, batch = Path(weights).stem, f"batch {stream.batch_size}"
    rest = f"{batch}, seed {config.seed_everything}"

    methods = " + ".join(config.model.methods or {}) or "baseline alone"
    room = LONGEST - len(f"{backbone}, {weights}, , {rest}")
    shown = methods if len(methods) <= room else f"{methods[: max(room - 1, 0)]}…"

    return {
        "name": f"{backbone}, {weights}, {shown}, {rest}"[:LONGEST],
        "group": f"{f'{dataset}, {backbone}, {weights}'[: LONGEST - len(comparison) - 2]}, {comparison}",
        "tags": [tag[:LONGEST_TAG] for tag in (dataset, backbone, weights, batch)],
    }
