"""Commands over a table of scores and performances: the options that they share, and their results."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from headstart.contract.tables.read_table import read_table, without_holes
from headstart.contract.tables.rows import Missing, TableLayout, Value
from headstart.output.dashboard import Tables
from headstart.output.errors import require_different
from headstart.output.results_folder import DashboardResults


class TableResults(DashboardResults):
    """Results of a command over a table of scores and performances, read and checked.

    Args:
        default: As for `ResultsFolder`.
        file_names: Names of the files, the first that of the JSON document.
        table: CSV or Parquet file, or the file of each target.
        least: Metrics that are needed.
        metrics: Metrics to use, by their names in the table. By default all of a long table, and the columns of a wide
            one that are called like a metric of the catalogue. A remark lists metrics that are left out. These score
            all sources of every target the same, or lack a source that others score.
        columns: Names of the columns in the file, if they differ from metric, source, target, score, performance, own
            and warning: '{source: Model, performance: Top 1}'. Several columns together can name a source: '{source:
            [model, img_size]}'. `own` is the data set that a source comes from; sources are not evaluated on it.
        where: Rows to use, by the values of columns: '{method: linear, img_size: [224, 384]}'. By default the
            fine-tuned rows of a table with the column `Trainable Backbone`.
        higher_is_better: False for performances or metrics of which lower values are better: '{performance: false}'.
        missing_value: Number that means a missing score or performance, such as -1.
        missing: How missing cells are handled. `refuse` raises an error. `complete` keeps the largest part of the table
            without missing cells. `pairwise` uses all sources that a target has.
        exclude_target: Leave out the cell of a target with the source of the same name. Each pool of sources is then
            used only for targets outside it. Experiments that differ only in the target thus have the same sources.
        **options: Options of `DashboardResults`.

    Attributes:
        whole: The table with its holes.
        table: The table without them, or with those that `pairwise` leaves.
        reading: The options that select cells of the table, as in the document.
        origin: The part of the document that names the files that were read.

    Raises:
        UserError: The folder cannot be written, the dashboard cannot be used, or the table cannot be read.
    """

    def __init__(
        self,
        default: str,
        file_names: Sequence[str],
        table: str | Mapping[str, str],
        minimum: int,
        metrics: list[str] | None = None,
        columns: dict[str, str | list[str]] | None = None,
        where: dict[str, Value | list[Value]] | None = None,
        higher_is_better: dict[str, bool] | None = None,
        missing_value: float | None = None,
        missing: Missing = "refuse",
        exclude_target: bool = True,
        **options: Any,
    ) -> None:
        if metrics is not None:
            require_different("metrics", metrics, minimum=max(minimum, 1))
        super().__init__(default, file_names, **options)

        layout = TableLayout(columns or {}, where or {}, higher_is_better or {}, missing_value, missing, exclude_target)
        self.reading = asdict(layout)
        files = Path(table) if isinstance(table, str) else {target: Path(path) for target, path in table.items()}
        self.whole = read_table(files, layout, metrics, minimum)
        self.table = without_holes(self.whole, missing, minimum)
        self.table_path = table
        self.origin = {"table": {"path": table, "sha256": self.table.sha256}}

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        """Raise an error if the folder holds results of another table or of other settings.

        Args:
            settings: Options that decide the results, as the document has them.

        Raises:
            UserError: As for `check_configuration`.
        """
        table = {"metrics": self.table.metrics, "table/sha256": self.table.sha256}
        self.check_configuration({**settings, **table})

    def publish_table(
        self, job_type: str, settings: Mapping[str, Any], document: Mapping[str, Any], tables: Tables
    ) -> None:
        """Mirror the result in the dashboard, under a title with the size of the table, unless `logger` is false."""
        table = self.table
        sizes = f"{len(table.metrics)} metrics, {len(table.sources)} sources, {len(table.targets)} targets"
        config = {"table": self.table_path, **settings}
        self.publish(job_type, f"{job_type.replace('-', ' ')}, {sizes}", config, document, tables)
