"""Commands over a table of scores and performances: the options that they share, and their results."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headstart.evaluation.stability.table import read_table
from headstart.output.dashboard import Tables
from headstart.output.errors import require_different
from headstart.output.results_folder import DashboardResults


class TableResults(DashboardResults):
    """Results of a command over a table of scores and performances, read and checked.

    Args:
        default: As for `ResultsFolder`.
        names: As for `ResultsFolder`.
        table_path: CSV file of the table.
        least: Metrics that are needed.
        metrics: Metrics that count, by their names in the table; by default all. Those that give all sources of every
            target the same score are left out, with a line that says so.
        columns: Names of columns in the file where they are others: '{source: Model, target: Dataset}'.
        performances: CSV file with the columns source, target and performance, such as `headstart performances`
            writes, in place of the table's own, which then needs no such column.
        exclude_target: Whether the cell of a target with the source of the same name is left out. Pools of sources are
            then used for the targets outside them alone, so that experiments that differ in the target alone have the
            same sources.
        trainable: Which rows count in a table with the column `Trainable Backbone`: those of fine-tuning the whole
            network, or with false those of training the head alone.
        **options: Options of `DashboardResults`.

    Attributes:
        table: The table.
        origin: The part of the document that names the files that were read.

    Raises:
        UserError: The folder cannot be written, the dashboard cannot be used, or the table cannot be read.
    """

    def __init__(
        self,
        default: str,
        names: Sequence[str],
        table_path: str,
        least: int,
        metrics: list[str] | None = None,
        columns: dict[str, str] | None = None,
        performances: str | None = None,
        exclude_target: bool = True,
        trainable: bool = True,
        **options: Any,
    ) -> None:
        if metrics is not None:
            require_different("metrics", metrics, least=max(least, 1))
        super().__init__(default, names, **options)
        self.table = read_table(Path(table_path), trainable, exclude_target, metrics, columns, least, performances)
        self.columns, self.exclude_target, self.trainable = columns, exclude_target, trainable
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
