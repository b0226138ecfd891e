"""Commands over a table of scores and performances: the options that they share, and their results."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jsonargparse.typing import PositiveInt

from headstart.contract.tables.layout import Missing, TableLayout
from headstart.contract.tables.table import read_table, without_holes
from headstart.output.dashboard import Tables
from headstart.output.errors import UserError, require_different
from headstart.output.results_folder import DashboardResults


class TableResults(DashboardResults):
    """Results of a command over a table of scores and performances, read and checked.

    Args:
        default: As for `ResultsFolder`.
        file_names: Names of the files, the first that of the JSON document.
        table_path: CSV file of the table.
        least: Metrics that are needed.
        metrics: Metrics to use, by their names in the table; by default all. A remark lists metrics that are left out.
            These score all sources of every target the same, or lack a source that others score.
        columns: Names of the columns in the file, if they differ: '{source: Model, target: Dataset}'. Several columns
            together can name a source: '{source: [Architecture, Pretrained on]}'.
        target_columns: Columns of targets, in a table with one column for each target; '[first, ..., last]' takes all
            between two. Their cells are performances, or scores if the table has a column of metrics.
        metric_columns: Columns of metrics, in a table with one column for each metric. Their cells are scores.
        own: Column with the data set that a source comes from. Sources are not evaluated on it.
        where: Rows to use, by the values of columns: '{method: linear, seed: ["0", "1"]}'.
        names: Other names for metrics, sources, targets and data sets of `own`, by their names in the file.
        best_by: Column that chooses among several rows of a cell: the row with the highest value, or the first of
            several.
        mean_over: Columns in which several rows of a cell may differ, such as '[seed]'. These rows are averaged.
        skip_lines: Numbers of lines of the file to skip, such as incomplete lines.
        classes: Number of classes of targets, '{pets: 37}', if the table has no such column. H-score is checked against
            it.
        missing_values: Numbers that mean a missing performance, such as '[-1]'. By default, negative whole numbers
            raise an error if all other performances are 0 or above.
        missing: How missing cells are handled. `refuse` raises an error. `complete` keeps the largest part of the table
            without missing cells. `pairwise` uses all sources that a target has.
        performances: CSV file with the columns source, target and performance, such as `headstart performances` writes.
            It replaces the performances of the table, which then needs no such column.
        performance_columns: Names of the columns of `performances`, if they differ.
        performance_where: Rows of `performances` to use, as for `where`.
        exclude_target: Leave out the cell of a target with the source of the same name. Each pool of sources is then
            used only for targets outside it. Experiments that differ only in the target thus have the same sources.
        trainable: Which rows to use if there is a column `Trainable Backbone`: fine-tuning (true) or training of the
            head alone (false).
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
        table_path: str,
        least: int,
        metrics: list[str] | None = None,
        columns: dict[str, str | list[str]] | None = None,
        target_columns: list[str] | None = None,
        metric_columns: list[str] | None = None,
        own: str | None = None,
        where: dict[str, str | list[str]] | None = None,
        names: dict[str, str] | None = None,
        best_by: str | None = None,
        mean_over: list[str] | None = None,
        skip_lines: list[PositiveInt] | None = None,
        classes: dict[str, PositiveInt] | None = None,
        missing_values: list[float] | None = None,
        missing: Missing = "refuse",
        performances: str | None = None,
        performance_columns: dict[str, str] | None = None,
        performance_where: dict[str, str | list[str]] | None = None,
        exclude_target: bool = True,
        trainable: bool = True,
        **options: Any,
    ) -> None:
        if metrics is not None:
            require_different("metrics", metrics, least=max(least, 1))
        if (performance_columns or performance_where) and performances is None:
            raise UserError("performance_columns, performance_where: they describe a file that performances names")
        if own is not None and not exclude_target:
            raise UserError(f"own: {own!r} given, which has no effect with exclude_target=false; leave one of them out")
        super().__init__(default, file_names, **options)

        layout = TableLayout(
            columns=columns or {},
            target_columns=target_columns or (),
            metric_columns=metric_columns or (),
            own=own,
            where=where or {},
            names=names or {},
            best_by=best_by,
            mean_over=mean_over or (),
            skip_lines=skip_lines or (),
            classes=classes or {},
            missing_values=missing_values,
            missing=missing,
            performance_columns=performance_columns or {},
            performance_where=performance_where or {},
            exclude_target=exclude_target,
            trainable=trainable,
        )
        standard = TableLayout()
        self.reading = {"columns": columns, "exclude_target": exclude_target, "trainable": trainable}
        self.reading |= {name: value for name, value in asdict(layout).items() if value != getattr(standard, name)}

        self.whole = read_table(Path(table_path), layout, metrics, least, performances)
        self.table = without_holes(self.whole, missing, least)
        self.table_path = table_path
        self.origin = {"table": {"path": table_path, "sha256": self.table.sha256}, "performances": performances}

    def check_settings(self, settings: Mapping[str, Any], digests: Mapping[str, Any] | None = None) -> None:
        """Raise an error if the folder holds results of another table or of other settings.

        Args:
            settings: Options that decide the results, as the document has them.
            digests: Digests of further files, by their paths in the document.

        Raises:
            UserError: As for `check_configuration`.
        """
        table = {"metrics": self.table.metrics, "table/sha256": self.table.sha256}
        self.check_configuration({**settings, **table, **(digests or {})})

    def publish_table(
        self, job_type: str, settings: Mapping[str, Any], document: Mapping[str, Any], tables: Tables
    ) -> None:
        """Mirror the result in the dashboard, under a title with the size of the table, unless `logger` is false."""
        table = self.table
        sizes = f"{len(table.metrics)} metrics, {len(table.sources)} sources, {len(table.targets)} targets"
        config = {"table": self.table_path, **settings}
        self.publish(job_type, f"{job_type.replace('-', ' ')}, {sizes}", config, document, tables)
