"""Standard errors of a study from drawing pools, by the jackknife over the batches of pools.

Source: Bradley Efron and Charles Stein, "The Jackknife Estimate of Variance", Annals of Statistics, 1981, section 2.
"""

from functools import reduce
from operator import add

import numpy as np

from headstart.evaluation.stability.study import COMPONENTS, Study
from headstart.metrics.arrays import Floats
from headstart.metrics.ranking.outcomes import MeanAgreement, Ties
from headstart.metrics.ranking.pool_batches import over_pools


def standard_error(without: Floats) -> Floats:
    """Compute the standard error `[...]` of estimates from those without each batch, `[batches, ...]`."""
    return np.asarray(np.std(without, axis=0) * (len(without) - 1) ** 0.5)


def setup_stability_errors(study: Study) -> dict[str, float]:
    """Compute the standard error of the setup stability by component; NaN if all pools are studied."""
    without = without_batches(study)
    return {name: float(standard_error(without[name])) for name in COMPONENTS}


def without_batches(study: Study) -> dict[str, Floats]:
    """Compute the setup stability without each batch by component, `[batches]`; NaN where it is undefined."""
    batches = study.batches
    without: dict[str, list[float | None]] = {name: [] for name in COMPONENTS}
    for left_out in range(len(batches)):
        others = batches[:left_out] + batches[left_out + 1 :]
        pooled = MeanAgreement()
        if others:
            pooled.add_means(*over_pools(others, study.pools))
        without["pool"].append(pooled.mean)
        for name in ("target", "measure"):
            without[name].append(reduce(add, (batch.agreements[name] for batch in others), MeanAgreement()).mean)
    return {name: np.array(means, dtype=np.float64) for name, means in without.items()}


def win_rate_errors(study: Study, ties: Ties) -> Floats:
    """Compute the standard errors of the win rates `[m, e + 1]` in percentage points; NaN if all pools are studied."""
    return standard_error(win_rates_without_batches(study, ties))


def win_rates_without_batches(study: Study, ties: Ties) -> Floats:
    """Compute the win rates without each batch in per cent, `[batches, m, e + 1]`."""
    return np.stack([(study.wins - batch.wins).percent(ties) for batch in study.batches])


def tied_errors(study: Study) -> Floats:
    """Compute those of the shares of experiments with several winners, `[e]`, in percentage points."""
    return standard_error(np.stack([(study.wins - batch.wins).tied_percent() for batch in study.batches]))
