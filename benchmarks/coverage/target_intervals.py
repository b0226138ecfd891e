"""How often intervals and ties over targets hold: of setup stability, its largest difference, and the best metric."""

from __future__ import annotations

import jsonargparse
import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.stability.study import COMPONENTS, Study, run_study
from headstart.evaluation.stability.study_tables import moves_most, setup_stability_interval
from headstart.evaluation.stability.table import TransferTable
from headstart.metrics.ranking.best_metrics import find_best
from headstart.metrics.ranking.static_orders import measure_targets
from headstart.metrics.sample_efficiency.scores import t_interval

SOURCES, POOL, TARGETS = 8, 6, 400
# Noise in the scores of each metric, relative to the spread of the sources.
NOISE = np.array([0.3, 0.35, 0.9, 1.2])

Values = NDArray[np.float64]


def main(populations: int = 40, studies: int = 25) -> None:
    """Sample populations of 400 targets, and tables of some of each, and count how often their intervals hold for all.

    Args:
        populations: Number of populations.
        studies: Number of tables of each.
    """
    for size in (5, 9, 17):
        generator = np.random.default_rng(size)
        held = np.array([count_held(generator, size, studies) for _ in range(populations)]).mean(axis=0) / studies
        names = (*COMPONENTS, "difference", "mean of a metric", "the best is the best or tied")
        shares = ", ".join(f"{name} {100 * share:.1f} %" for name, share in zip(names, held, strict=True))
        print(f"{size} targets, {populations * studies} tables: {shares}")


def count_held(generator: np.random.Generator, size: int, studies: int) -> list[int]:
    """Count the tables of one population whose intervals and ties hold for the whole population.

    Args:
        generator: Source of randomness.
        size: Targets in a table.
        studies: Number of tables.

    Returns:
        Counts for the setup stability of each component, the difference of the two lowest, the mean of a metric, and
        for the best metric being among the best of the table or tied with them.
    """
    own = generator.normal(size=(SOURCES, 1))
    performances = own + generator.normal(size=(SOURCES, TARGETS))
    spread = NOISE[:, None, None] * np.exp(generator.normal(0, 0.5, (len(NOISE), 1, TARGETS)))
    scores = performances + spread * generator.normal(size=(len(NOISE), SOURCES, TARGETS))
    performances = performances - performances.min()

    whole, known = _study(scores, performances), np.ones(performances.shape, dtype=np.bool_)
    true = {name: agreement.mean or 0.0 for name, agreement in whole.setup_stability.items()}
    values = measure_targets(scores, performances, known)[:, :, 0]

    held = np.zeros(len(COMPONENTS) + 3, dtype=np.int64)
    for _ in range(studies):
        chosen = generator.choice(TARGETS, size, replace=False)
        study = _study(scores[:, :, chosen], performances[:, chosen])
        ends = [setup_stability_interval(study, name) for name in COMPONENTS]
        most, sampled = moves_most(study), values[:, chosen]
        ends += [most["ci95"] if most else (np.nan, np.nan), t_interval(sampled[0])]
        truths = [true[name] for name in COMPONENTS]
        truths += [true[most["next"]] - true[most["component"]] if most else np.nan, values[0].mean()]
        result, best = find_best(sampled), values.mean(axis=1).argmax()
        within = [low <= truth <= high for (low, high), truth in zip(ends, truths, strict=True)]
        held += [*within, result.best[best] or result.tied[best]]
    return held.tolist()


def _study(scores: Values, performances: Values) -> Study:
    metrics, sources, targets = ([str(index) for index in range(count)] for count in scores.shape)
    table = TransferTable(metrics, sources, targets, np.full(len(targets), -1), scores, performances, "", [])
    return run_study(table, POOL, 1e-12)


if __name__ == "__main__":
    jsonargparse.auto_cli(main)
