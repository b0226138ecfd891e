"""How often intervals and ties over targets hold: of setup stability, its largest difference, and the best metric."""

import numpy as np

from headstart.benchmarks.coverage.frame import Shares, Values, holds, print_table, simulate
from headstart.contract.tables.table import TransferTable
from headstart.evaluation.stability.study import COMPONENTS, Study, run_study
from headstart.evaluation.stability.study_tables import moves_most, setup_stability_interval
from headstart.metrics.ranking.best_metrics import find_best
from headstart.metrics.ranking.over_targets import mean_interval
from headstart.metrics.ranking.pools import Pools
from headstart.metrics.ranking.static_orders import measure_targets

SOURCES, POOL, TARGETS = 8, 6, 400
# Noise in the scores of each metric, relative to the spread of the sources.
NOISE = np.array([0.3, 0.35, 0.9, 1.2])


def coverage(size: int, populations: int, studies: int) -> Shares:
    """Return how often the intervals and ties of tables of some targets hold for their whole population.

    Args:
        size: Number of targets of a table.
        populations: Number of populations.
        studies: Number of tables of each.
    """
    return simulate(lambda generator: _population_shares(generator, size, studies), populations, seed=size)


def _population_shares(generator: np.random.Generator, size: int, studies: int) -> Shares:
    """Sample a population, and return the shares of its tables."""
    own = generator.normal(size=(SOURCES, 1))
    performances = own + generator.normal(size=(SOURCES, TARGETS))
    spread = NOISE[:, None, None] * np.exp(generator.normal(0, 0.5, (len(NOISE), 1, TARGETS)))
    scores = performances + spread * generator.normal(size=(len(NOISE), SOURCES, TARGETS))
    performances = performances - performances.min()

    truth = {name: agreement.mean or 0.0 for name, agreement in _study(scores, performances).setup_stability.items()}
    known = np.ones(performances.shape, dtype=np.bool_)
    values = measure_targets(scores, performances, known)[:, :, 0]

    def trial(generator: np.random.Generator) -> dict[str, bool | np.ndarray]:
        targets = generator.choice(TARGETS, size, replace=False)
        study, sampled = _study(scores[:, :, targets], performances[:, targets]), values[:, targets]
        held = {name: holds(setup_stability_interval(study, name), truth[name]) for name in COMPONENTS}
        most, result, best = moves_most(study), find_best(sampled), values.mean(axis=1).argmax()
        return {
            **held,
            "difference": most is not None and holds(most["ci95"], truth[most["next"]] - truth[most["component"]]),
            "mean of a metric": holds(mean_interval(sampled[0], -1.0, 1.0), values[0].mean()),
            "the best is the best or tied": result.best[best] or result.tied[best],
        }

    return simulate(trial, studies, seed=int(generator.integers(2**32)))


def _study(scores: Values, performances: Values) -> Study:
    metrics, sources, targets = ([str(index) for index in range(count)] for count in scores.shape)
    table = TransferTable.complete(metrics, sources, targets, scores, performances)
    return run_study(table, Pools(len(sources), POOL), 1e-12)


def main(populations: int = 40, studies: int = 25) -> None:
    """Print the shares for tables of 6 to 17 targets of populations of 400.

    Args:
        populations: Number of populations.
        studies: Number of tables of each.
    """
    print_table((f"{size} targets", coverage(size, populations, studies)) for size in (6, 7, 9, 17))
