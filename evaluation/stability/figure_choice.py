"""The options that choose what the figures of a stability study show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import Any, get_args

from headstart.evaluation.stability.paper_examples import EXAMPLES, Example, Part
from headstart.evaluation.stability.table import TransferTable
from headstart.metrics.ranking.ranking_measures import Measure
from headstart.output.errors import UserError, prefix_errors


@dataclass(frozen=True)
class FigureChoice:
    """What the figures of a stability study show.

    Args:
        measure: Measure of the figures; by default the one of the paper's figures, which is Pearson for the preset
            `scenario2` and weighted Kendall elsewhere.
        metrics: Two metrics to compare; by default all pairs, and the pairs with the strongest contradictions where
            single components vary.
        target: Target where it does not vary; by default that with the strongest contradiction.
        targets: Two targets to compare where the target varies, and in the graph of experiments; by default those with
            the strongest contradiction.
        measures: Two measures to compare where the measure varies, by default the correlations with the strongest
            contradiction; and in the graph, by default that of the figures, and Pearson or weighted Kendall.
        pools: Two source pools of the graph, each a list of sources; by default two with few sources in common.
        example: An example of the paper, for the part of the figures that shows it; options that are given besides it
            win.
    """

    measure: Measure | None = None
    metrics: list[str] | None = None
    target: str | None = None
    targets: list[str] | None = None
    measures: list[Measure] | None = None
    pools: list[list[str]] | None = None
    example: Example | None = None

    @property
    def chosen(self) -> dict[str, Any]:
        """The options that are not None, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def of_parts(self, examples: Sequence[Example] = ()) -> dict[Part, FigureChoice]:
        """Return the choice of each part of the figures.

        Args:
            examples: Examples of the paper that are shown where no other is chosen.
        """
        shown = {part: EXAMPLES[name][1] for part, name in self.shown_examples(examples).items()}
        parts = {part: FigureChoice(**{**shown.get(part, {}), **self.chosen}) for part in get_args(Part)}
        # Pools are only chosen for the graph; elsewhere they vary.
        return {part: choice if part == "graph" else replace(choice, pools=None) for part, choice in parts.items()}

    def shown_examples(self, examples: Sequence[Example] = ()) -> dict[Part, Example]:
        """Return the paper's examples that the figures show, by their parts; `examples` as for `of_parts`."""
        return {EXAMPLES[name][0]: name for name in (*examples, *([self.example] if self.example else []))}

    def require_known(self, table: TransferTable, pool_size: int, examples: Sequence[Example] = ()) -> None:
        """Raise an error for names that are not in the study, and for options with too few or too many names.

        Args:
            table: The table of the study.
            pool_size: Sources in a pool.
            examples: As for `of_parts`.

        Raises:
            UserError: A name is unknown, or another number of names is needed.
        """
        if self.example:
            for option, name, known in FigureChoice(**EXAMPLES[self.example][1]).unknown_names(table):
                raise UserError(
                    f"figures.example: {self.example} has {name!r} among its {option}, and the study has {known}"
                )
        with prefix_errors("figures"):
            for option, name, known in self.unknown_names(table):
                raise UserError(f"{option}: {name!r} is not in the study, which has {known}")
            for option in ("metrics", "targets", "measures"):
                names = getattr(self, option)
                if names is not None and (len(names) != 2 or len(set(names)) != 2):
                    raise UserError(f"{option}: {names} given; two different ones are compared")
            if self.pools is not None:
                self._require_pools(table, pool_size, examples)

    def _require_pools(self, table: TransferTable, pool_size: int, examples: Sequence[Example]) -> None:
        pools = self.pools or []
        for pool in pools:
            if len(set(pool)) != len(pool) or len(pool) != pool_size:
                raise UserError(f"pools: {', '.join(pool)} given; a pool has {pool_size} different sources")
        if len(pools) != 2 or len(set(map(frozenset, pools))) != 2:
            raise UserError(f"pools: {self.pools} given; two different ones are compared")
        targets = [table.targets[i] for i in self.of_parts(examples)["graph"].compared_targets(table)]
        if len(targets) < 2:
            raise UserError(
                f"pools: of the targets that are compared only {', '.join(targets) or 'none'} is in no pool; two are "
                "needed"
            )

    def unknown_names(self, table: TransferTable) -> Iterator[tuple[str, str, str]]:
        """Yield each name that is not in the table, with its option, and the names that the table has."""
        for option, names, known in (
            ("metrics", self.metrics or [], table.metrics),
            ("target", [self.target] if self.target else [], table.targets),
            ("targets", self.targets or [], table.targets),
            ("pools", chain.from_iterable(self.pools or []), table.sources),
        ):
            yield from ((option, name, ", ".join(known)) for name in names if name not in known)

    def pairs(self, table: TransferTable) -> list[tuple[int, int]]:
        """Return the pairs of metrics that are compared, as indices."""
        names = table.metrics if self.metrics is None else self.metrics
        return list(combinations(map(table.metrics.index, names), 2))

    def fixed_targets(self, table: TransferTable) -> list[int]:
        """Return the indices of targets that may be shown where the target does not vary."""
        return [i for i, name in enumerate(table.targets) if self.target in (None, name)]

    def compared_targets(self, table: TransferTable) -> list[int]:
        """Return the indices of targets that may be shown where the target varies; none of them is in a chosen pool."""
        pooled = set(chain.from_iterable(self.pools or []))
        indices = [table.targets.index(name) for name in self.targets or table.targets]
        return [i for i in indices if table.own[i] < 0 or table.sources[table.own[i]] not in pooled]


def fitting_examples(examples: Iterable[Example], table: TransferTable) -> list[Example]:
    """Return those of the paper's examples whose targets and metrics are in a table."""
    return [name for name in examples if not any(FigureChoice(**EXAMPLES[name][1]).unknown_names(table))]
