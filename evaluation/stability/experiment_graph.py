"""The graph of eight experiments, whose edges connect two that differ in one component."""

import textwrap
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from headstart.contract.tables.table import TransferTable
from headstart.evaluation.stability.figure_choice import FigureChoice, varying_target
from headstart.evaluation.stability.study import TIED, Study, pool_outcomes
from headstart.metrics.arrays import Floats, Indices
from headstart.metrics.ranking.outcomes import agreement_vectors
from headstart.metrics.ranking.ranking_measures import EVALUATION_MEASURES, MEASURES
from headstart.output.figures import shorten

# Colours of the components, in the order of the coordinates of an experiment.
COLOURS = {"target": "#2a9d5c", "measure": "#3b6fd1", "pool": "#d9822b"}
# Points in an inch.
POINTS = 72
# Inches between boxes, for an edge and its label; around the graph; and for the legend above it.
ROOM, MARGIN, LEGEND = 0.7, 0.3, 1.0
POOLS = ("S₁", "S₂")
CENTRED: dict[str, Any] = {"ha": "center", "va": "center"}
BOX_TEXT: dict[str, Any] = {"fontsize": 8, "linespacing": 1.5}
# Padding of a box, as a share of the font size.
PADDING = 0.5
# Characters in a line of an experiment's box, and below the graph; sources that a pool is listed to lack.
IN_BOX, IN_LINE, MOST_NAMED = 40, 110, 12

Experiment = tuple[int, ...]


def plot_graph(study: Study, choice: FigureChoice, measure: int) -> Figure | None:
    """Plot eight experiments: two targets, two measures, two pools; None if no two targets have two pools in common.

    Every edge has the agreement of two outcomes that differ in one component. The mean over the edges of a colour is
    the setup stability of this small study.
    """
    targets = [panel.target for panel in varying_target(study, choice, measure)]
    pools = _two_pools(study, targets)
    if len(set(targets)) < 2 or len(pools) < 2:
        return None
    other = MEASURES.index("pearson" if MEASURES[measure] != "pearson" else "weighted_kendall")
    measures = [MEASURES.index(name) for name in choice.measures] if choice.measures else [measure, other]
    outcomes = pool_outcomes(study.table, pools)[0][:, targets][:, :, measures].transpose(1, 2, 0, 3)

    texts = _texts(study, outcomes, targets, measures)
    cube = _cube(list(texts.values()))
    description = _describe_pools(study.table, pools)
    style: dict[str, Any] = {"fontsize": 8.5, "linespacing": 1.5}
    graph, (across, below) = cube.position((1, 1, 1)) + cube.box, _size(description, style)
    width, height = max(graph[0], across) + 2 * MARGIN, graph[1] + below + 3 * MARGIN + LEGEND
    figure = Figure(figsize=(width, height))
    figure.text(MARGIN / width, MARGIN / height, description, **style)

    axes = figure.add_axes((0, 0, 1, 1))
    left, bottom = -cube.box / 2 - MARGIN - (0, below + MARGIN)
    axes.set(xlim=(left, left + width), ylim=(bottom, bottom + height), aspect="equal")
    axes.set_axis_off()
    means = _plot_edges(axes, cube, outcomes)
    box = {"boxstyle": f"round,pad={PADDING}", "facecolor": "#f6f6f6", "edgecolor": "#bbbbbb"}
    for experiment, text in texts.items():
        x, y = cube.position(experiment)
        axes.text(x, y, text, bbox=box, zorder=3, **BOX_TEXT, **CENTRED)

    handles = []
    for component, colour in COLOURS.items():
        mean = f"{means[component]:z.2f}".replace("-", "−") if np.isfinite(means[component]) else "undefined"
        handles.append(Line2D([], [], color=colour, linewidth=2, label=f"{component} varies: mean agreement {mean}"))
    axes.legend(handles=handles, loc="upper left", fontsize=10, borderaxespad=1.2)
    return figure


class Cube(NamedTuple):
    """Positions of the experiments, those of a cube seen from the side, in inches.

    Attributes:
        box: Width and height of the largest box, `[2]`.
        steps: Steps from one target, measure or pool to the other, `[3, 2]`.
    """

    box: Floats
    steps: Floats

    def position(self, experiment: Experiment) -> Floats:
        """Return the centre of an experiment's box, `[2]`."""
        return np.asarray(experiment @ self.steps)

    def label(self, first: Experiment, second: Experiment) -> Floats:
        """Return the centre of the label on an edge, `[2]`, where no box and no other edge is."""
        middle = (self.position(first) + self.position(second)) / 2
        axis = int(np.argmax(np.subtract(second, first)))
        if axis < len(middle):
            # An edge of the first pool is crossed at the step to the second pool, one of the second before its end.
            free = self.steps[2, axis] + self.steps[axis, axis] + (first[2] - 0.5) * self.box[axis]
            middle[axis] = free / 2
        return np.asarray(middle)


def _cube(texts: Sequence[str]) -> Cube:
    """Return a cube so large that no box of these texts overlaps another one or an edge beside it."""
    box = np.max([_size(text, BOX_TEXT) for text in texts], axis=0) + 2 * PADDING * BOX_TEXT["fontsize"] / POINTS
    across, up = np.maximum(box / (2, 1) + ROOM, (2.5, 1.75))
    return Cube(box, np.array([(across + box[0] / 2 + 2 * ROOM, 0.0), (0.0, up + box[1] + ROOM), (across, up)]))


def _size(text: str, style: Mapping[str, Any]) -> Floats:
    """Return the width and height of a text in inches, `[2]`."""
    return np.array(Figure(dpi=POINTS).text(0, 0, text, **style).get_window_extent().size) / POINTS


def _texts(study: Study, outcomes: Floats, targets: Sequence[int], measures: Sequence[int]) -> dict[Experiment, str]:
    """Return what the boxes say: the experiment, and its ranking of the metrics."""
    titles, target_names = shorten(study.table.titles), shorten(study.table.targets)
    texts = {}
    for experiment in product((0, 1), repeat=3):
        target, measure, pool = experiment
        name = EVALUATION_MEASURES[MEASURES[measures[measure]]].title
        title = _wrap(f"{target_names[targets[target]]}, {name}, {POOLS[pool]}")
        texts[experiment] = f"{title}\n{rank_in_words(titles, outcomes[experiment])}"
    return texts


def _two_pools(study: Study, targets: list[int]) -> Indices:
    """Return a pool that both targets have, and the one with the fewest sources in common with it."""
    usable = np.flatnonzero(np.isfinite(study.shown[:, targets]).all(axis=(1, 2, 3)))
    if len(usable) < 2:
        return np.empty((0, study.pools.size), dtype=np.intp)
    common = [len(np.intersect1d(study.shown_pools[usable[0]], study.shown_pools[pool])) for pool in usable]
    return study.shown_pools[[usable[0], usable[int(np.argmin(common))]]]


def _plot_edges(axes: Axes, cube: Cube, outcomes: Floats) -> dict[str, float]:
    """Connect experiments that differ in one component; return the mean agreement for each component."""
    vectors, defined = agreement_vectors(outcomes, TIED)
    agreements: dict[str, list[float]] = {component: [] for component in COLOURS}
    for first, second in combinations(product((0, 1), repeat=3), 2):
        differing = [name for name, one, other in zip(COLOURS, first, second, strict=True) if one != other]
        if len(differing) != 1:
            continue
        [component] = differing
        ends = np.array([cube.position(first), cube.position(second)])
        axes.plot(*ends.T, color=COLOURS[component], linewidth=2, zorder=1)

        label = "–"
        if defined[first] and defined[second]:
            agreement = float(vectors[first] @ vectors[second])
            agreements[component].append(agreement)
            label = f"{agreement:z.1f}".replace("-", "−")
        box = {"boxstyle": "round,pad=0.22", "facecolor": "white", "edgecolor": "none"}
        x, y = cube.label(first, second).tolist()
        axes.text(x, y, label, color=COLOURS[component], fontsize=11, bbox=box, zorder=2, **CENTRED)
    return {component: float(np.mean(values)) if values else np.nan for component, values in agreements.items()}


def rank_in_words(titles: Sequence[str], outcome: Floats) -> str:
    """List metrics from the best to the worst, with an equals sign between two that are tied."""
    order = np.argsort(-outcome, kind="stable")
    signs = [" =" if gap <= TIED else " >" for gap in -np.diff(outcome[order])]
    # No-break spaces keep a sign at the end of its line, which shows that the list continues. They are replaced
    # afterwards, because figures escape them in names as characters that look like others.
    words = [
        f"{titles[metric]}{sign}".replace(" ", "\N{NO-BREAK SPACE}")
        for metric, sign in zip(order, [*signs, ""], strict=True)
    ]
    return _wrap(" ".join(words)).replace("\N{NO-BREAK SPACE}", " ")


def _describe_pools(table: TransferTable, pools: Indices) -> str:
    sources = shorten(table.sources)
    lines = []
    for name, pool in zip(POOLS, pools, strict=True):
        outside = [source for i, source in enumerate(sources) if i not in pool]
        more = f" and {len(outside) - MOST_NAMED} more" if len(outside) > MOST_NAMED else ""
        text = f"{name}: all {len(sources)} sources but {', '.join(outside[:MOST_NAMED])}{more}"
        lines.append(_wrap(text, IN_LINE))
    return "\n".join(lines)


def _wrap(text: str, characters: int = IN_BOX) -> str:
    return textwrap.fill(text, characters, break_long_words=False, break_on_hyphens=False)
