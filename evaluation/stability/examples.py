"""Which experiments of a stability study its figures show."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, product
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.stability.paper_examples import EXAMPLES, Example, Part
from headstart.evaluation.stability.study import Study
from headstart.evaluation.stability.table import TransferTable
from headstart.metrics.ranking.ranking_measures import MEASURES, Measure
from headstart.output.errors import UserError, prefix_errors

Values = NDArray[np.float64]


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

    def of_parts(self, examples: Sequence[Example] = ()) -> dict[Part, FigureChoice]:
        """Give what each part of the figures shows.

        Args:
            examples: Examples of the paper that are shown where no other is chosen.
        """
        shown = {part: EXAMPLES[name][1] for part, name in self.shown_examples(examples).items()}
        parts = {part: FigureChoice(**{**shown.get(part, {}), **self.given}) for part in get_args(Part)}
        # Where pools vary, none is chosen.
        return {part: choice if part == "graph" else replace(choice, pools=None) for part, choice in parts.items()}

    def shown_examples(self, examples: Sequence[Example] = ()) -> dict[Part, Example]:
        """Give the paper's examples that the figures show, by their parts; `examples` as for `of_parts`."""
        return {EXAMPLES[name][0]: name for name in (*examples, *([self.example] if self.example else []))}

    @property
    def given(self) -> dict[str, Any]:
        """The options that were given, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def require_known(self, table: TransferTable, pool_size: int, examples: Sequence[Example] = ()) -> None:
        """Check the names; a UserError says which is not in the study, or how many are needed.

        Args:
            table: What is studied.
            pool_size: Sources in a pool.
            examples: As for `of_parts`.
        """
        if self.example:
            for option, name, known in FigureChoice(**EXAMPLES[self.example][1]).unknown_names(table):
                there = f"the study has {_list(known)}"
                raise UserError(f"figures.example: {self.example} has {name!r} among its {option}, and {there}")
        with prefix_errors("figures"):
            for option, name, known in self.unknown_names(table):
                raise UserError(f"{option}: {name!r} is not in the study, which has {_list(known)}")
            for option in ("metrics", "targets", "measures"):
                _require_two(option, getattr(self, option), getattr(self, option) or [])
            for pool in self.pools or []:
                if len(set(pool)) != len(pool) or len(pool) != pool_size:
                    raise UserError(f"pools: {_list(pool)} given; a pool has {pool_size} different sources")
            _require_two("pools", self.pools, [frozenset(pool) for pool in self.pools or []])
            outside = self.of_parts(examples)["graph"].compared_targets(table)
            if self.pools and len(outside) < 2:
                there = _list([table.targets[place] for place in outside]) or "none"
                raise UserError(f"pools: of the targets that are compared only {there} is in no pool; two are needed")

    def unknown_names(self, table: TransferTable) -> Iterator[tuple[str, str, list[str]]]:
        """Give each name that is not in the table, with the option that has it and the names that there are."""
        for option, names, known in (
            ("metrics", self.metrics or [], table.metrics),
            ("target", [self.target] if self.target else [], table.targets),
            ("targets", self.targets or [], table.targets),
            ("pools", list(chain.from_iterable(self.pools or [])), table.sources),
        ):
            yield from ((option, name, known) for name in names if name not in known)

    def pairs(self, table: TransferTable) -> list[tuple[int, int]]:
        """Give the pairs of metrics that are compared, as indices."""
        chosen = table.metrics if self.metrics is None else self.metrics
        return list(combinations(map(table.metrics.index, chosen), 2))

    def fixed_targets(self, table: TransferTable) -> list[int]:
        """Give the targets that may be shown where the target does not vary, as indices."""
        return [place for place, name in enumerate(table.targets) if self.target in (None, name)]

    def compared_targets(self, table: TransferTable) -> list[int]:
        """Give the targets that may be shown where the target varies, as indices: none that is in a pool of these."""
        taken = {source for pool in self.pools or [] for source in pool}
        names = table.targets if self.targets is None else self.targets
        places = [table.targets.index(name) for name in names]
        return [place for place in places if table.own[place] < 0 or table.sources[table.own[place]] not in taken]


def fitting_examples(examples: Iterable[Example], table: TransferTable) -> list[Example]:
    """Give those of the paper's examples whose targets and metrics a table has."""
    return [name for name in examples if not any(FigureChoice(**EXAMPLES[name][1]).unknown_names(table))]


def _require_two(option: str, given: Sequence[Any] | None, values: Sequence[Hashable]) -> None:
    if given is not None and (len(values) != 2 or len(set(values)) != 2):
        raise UserError(f"{option}: {given} given; two different ones are compared")


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)


@dataclass(frozen=True)
class Panel:
    """A scatter of experiments with all pools: two metrics on one target by one measure, all as indices.

    Attributes:
        target: Target.
        measure: Measure.
        across: Metric on the horizontal axis.
        up: Metric on the vertical axis.
    """

    target: int
    measure: int
    across: int
    up: int

    def points(self, study: Study) -> Values:
        """Give the defined outcomes of the pools that are shown, `[pools, 2]`."""
        points = study.shown[:, self.target, self.measure][:, [self.across, self.up]]
        return points[np.isfinite(points).all(axis=1)]


def varying_target(study: Study, choice: FigureChoice, measure: int) -> list[Panel]:
    """Find two targets on which two metrics contradict each other most; one, if there is only one target."""
    targets, pairs = choice.compared_targets(study.table), choice.pairs(study.table)
    return _most_contrary(([Panel(target, measure, *pair) for target in targets] for pair in pairs), study)


def varying_measure(study: Study, choice: FigureChoice) -> list[Panel]:
    """Find two measures by which two metrics on the same target contradict each other most."""
    # Rel@1 lies on another scale than the three correlations.
    measures = [MEASURES.index(name) for name in choice.measures or ("weighted_kendall", "kendall", "pearson")]
    places = product(choice.fixed_targets(study.table), choice.pairs(study.table))
    return _most_contrary(([Panel(target, each, *pair) for each in measures] for target, pair in places), study)


def _most_contrary(alternatives: Iterable[list[Panel]], study: Study) -> list[Panel]:
    """Find, among panels that differ in one component, the two that lie farthest on either side of equality."""
    candidates = []
    for panels in alternatives:
        differences = [_differences(panel, study) for panel in panels]
        gaps = [float(each.mean()) if len(each) else 0.0 for each in differences]
        # By rank, so that these are two also where all gaps are the same.
        low, high = (int(place) for place in np.argsort(gaps, kind="stable")[[0, -1]])
        candidates.append((min(gaps[high], -gaps[low]), [panels[place] for place in sorted({low, high})]))
    return max(candidates, key=lambda candidate: candidate[0])[1]


def varying_pool(study: Study, choice: FigureChoice, measure: int) -> list[Panel]:
    """Find up to two targets on which the pool alone decides which of two metrics wins, different if that is open."""
    places = product(choice.fixed_targets(study.table), choice.pairs(study.table))
    panels = [Panel(target, measure, *pair) for target, pair in places]
    first, *others = sorted(panels, key=lambda panel: -_indecision(panel, study))
    return [first, *(panel for panel in others if choice.target is not None or panel.target != first.target)][:2]


def _indecision(panel: Panel, study: Study) -> float:
    """Say how evenly the wins are spread, and how wide the differences."""
    differences = _differences(panel, study)
    if not len(differences):
        return 0.0
    return (1 - abs(float(np.sign(differences).mean()))) * float(np.abs(differences).mean())


def _differences(panel: Panel, study: Study) -> Values:
    """Give by how much the metric on the vertical axis is better in each pool."""
    points = panel.points(study)
    return points[:, 1] - points[:, 0]
