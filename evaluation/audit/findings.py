"""The findings of an audit about a table, as arrays, as the content of `audit.json`, and as CSV tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headstart.contract.tables.table import TransferTable
from headstart.evaluation.audit.fidelity import describe_fidelity, fidelity_csv, measure_fidelity
from headstart.evaluation.audit.helpful_pools import HelpfulPools, helpful_csv
from headstart.evaluation.audit.rankers import Facts, rank_sources, summarize, without
from headstart.evaluation.estimates import few_targets, mean_over_targets
from headstart.evaluation.stability.study import COMPONENTS, Study, run_study, setup_stability_errors, win_rate_errors
from headstart.evaluation.stability.study_tables import RATED
from headstart.metrics.arrays import Flags, Floats
from headstart.metrics.ranking.pools import Pools
from headstart.metrics.ranking.ranking_measures import MEASURES
from headstart.metrics.ranking.static_orders import mean_spearman, performance_ranks
from headstart.metrics.sample_efficiency.scores import finite
from headstart.output.markup import escape_cell
from headstart.output.progress import track

# Sources left out, targets and rankers up to which each source is left out once: some minutes.
MOST_LEFT_OUT = 200_000


def audit_table(table: TransferTable, facts: Facts, pools: Pools) -> tuple[dict[str, Any], list[str]]:
    """Audit a table.

    Args:
        table: Scores and performances.
        facts: Facts about its sources.
        pools: The pools of the studies.

    Returns:
        The part of `audit.json` that the table decides, with None for undefined values. And sentences that say why
        there are no intervals, no setup stability or no win rates.
    """
    rankers = rank_sources(table, facts)
    names, targets = rankers.names, table.targets
    families = sorted(set(facts.families)) if len(set(facts.families)) > 1 else []
    one_by_one = table.sources if rankers.scores.size <= MOST_LEFT_OUT else []
    models = track(one_by_one, "leave one model out", "models")
    without_models = {model: _means_without(table, facts, np.array(table.sources) == model) for model in models}
    without_families = {each: _means_without(table, facts, np.array(facts.families) == each) for each in families}

    # Both studies are left out if there are too few metrics or rankers.
    stability = _study(table, pools)
    all_rankers = replace(table, metrics=names, scores=np.where(table.known, rankers.scores, 0.0))
    helpful = HelpfulPools(all_rankers)
    wins = _study(all_rankers, pools, each_block=helpful.add)
    setup_stability: dict[str, float | None] = dict.fromkeys(COMPONENTS)
    if stability:
        setup_stability = {name: agreement.mean for name, agreement in stability.setup_stability.items()}

    document = {
        "metrics": table.metrics,
        "sources": table.sources,
        "targets": targets,
        **summarize(table, rankers),
        "leave_one_model_out": _left_out(names, without_models),
        "leave_one_family_out": _left_out(names, without_families),
        "ranks": _dispersion(table),
        "all_pools": pools.all_in_json,
        "setup_stability": setup_stability,
        "win_rate_percent": _by_ranker(names, wins.wins.percent("split")) if wins else {},
        "standard_error": _errors(names, stability, wins) if pools.drawn else None,
        "helpful_pools": helpful.describe() if wins else {},
        "fidelity": describe_fidelity(measure_fidelity(table, rankers.scores), names, targets),
    }

    has_mean_ranks = np.isfinite(rankers.scores[0][table.known]).all()
    sources = len(table.sources)
    missing = {
        f"leave one model out: {sources} sources are too many for an audit of {len(targets)} targets and {len(names)} "
        "rankers": not one_by_one,
        "setup stability: it compares two metrics or more": len(table.metrics) < 2,
        "win rates: they compare two rankers or more": len(names) < 2,
        "win rates: a source has no mean rank, because it has no other targets": not has_mean_ranks,
    }
    not_computed = [f"No {reason}." for reason, applies in missing.items() if applies]
    return document, [*few_targets(len(targets)), *not_computed]


def _means_without(table: TransferTable, facts: Facts, left_out: Flags) -> Floats:
    """Compute how well every ranker predicts performance without some sources, as means over targets, `[r, e]`."""
    measured = rank_sources(*without(table, facts, left_out)).measured
    return mean_over_targets(measured.swapaxes(1, 2))


def _study(table: TransferTable, pools: Pools, **options: Any) -> Study | None:
    """Study the pools; None if there are fewer than two metrics, or a missing score.

    Args:
        table: Scores and performances.
        pools: The pools.
        **options: As for `run_study`.
    """
    if len(table.metrics) < 2 or not np.isfinite(table.scores).all():
        return None
    return run_study(table, pools, **options)


def _errors(names: Sequence[str], stability: Study | None, wins: Study | None) -> dict[str, Any]:
    """Return the standard errors of drawing pools, by the names of the estimates."""
    errors = setup_stability_errors(stability) if stability else {}
    return {
        "setup_stability": {name: finite(errors.get(name, np.nan)) for name in COMPONENTS},
        "win_rate_percent": _by_ranker(names, win_rate_errors(wins, "split")) if wins else {},
    }


def _by_ranker(names: Sequence[str], rates: Floats) -> dict[str, dict[str, float | None]]:
    """Name the values `[r, e + 1]`."""
    return {name: dict(zip(RATED, map(finite, values), strict=True)) for name, values in zip(names, rates, strict=True)}


def _left_out(names: Sequence[str], without: Mapping[str, Floats]) -> dict[str, Any]:
    """Describe the means over targets with each of some models or families left out, `[r, e]` each."""
    if not without:
        return {}
    return {
        name: {
            measure: {left_out: finite(values[r, e]) for left_out, values in without.items()}
            for e, measure in enumerate(MEASURES)
        }
        for r, name in enumerate(names)
    }


def _dispersion(table: TransferTable) -> dict[str, Any]:
    """Describe how the ranks of the sources spread over the targets."""
    rho, targets = mean_spearman(table.performances, table.known), table.targets
    ranks_of = zip(table.sources, performance_ranks(table.performances, table.known), strict=True)
    return {
        "mean_spearman": finite(rho),
        "kendalls_w": finite((1 + (len(targets) - 1) * rho) / len(targets)),
        "sources": {
            name: {
                "mean": finite(np.nanmean(ranks)),
                "standard_deviation": finite(np.nanstd(ranks, ddof=1)) if np.isfinite(ranks).sum() > 1 else None,
                "best": finite(np.nanmin(ranks)),
                "worst": finite(np.nanmax(ranks)),
                "per_target": {target: finite(rank) for target, rank in zip(targets, ranks, strict=True)},
            }
            for name, ranks in ranks_of
        },
    }


def csv_tables(document: Mapping[str, Any]) -> dict[str, tuple[list[str], list[list[Any]]]]:
    """Return the columns and rows of each CSV table by name."""
    rankers = {
        name: {measure: summary["per_target"] for measure, summary in measures.items()}
        for name, measures in document["rankers"].items()
    }
    beyond = {
        name: {"kendall_given_mean_rank": summary["per_target"]}
        for name, summary in document["kendall_given_mean_rank"].items()
    }
    left_out = {kind: document[f"leave_one_{kind}_out"] for kind in ("model", "family")}
    ranks = {name: source["per_target"] for name, source in document["ranks"]["sources"].items()}

    tables = {
        "rankers": (["ranker", "measure", "target", "value"], [*_leaves(rankers), *_leaves(beyond)]),
        "left_out": (["left_out", "ranker", "measure", "which", "mean"], list(_leaves(left_out))),
        "ranks": (["source", "target", "rank"], list(_leaves(ranks))),
        "fidelity": fidelity_csv(document["fidelity"]),
        "helpful_pools": helpful_csv(document["helpful_pools"]),
    }
    return {name: (columns, [list(map(escape_cell, row)) for row in rows]) for name, (columns, rows) in tables.items()}


def _leaves(nested: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Yield a row for each value of nested mappings: the keys that lead to it, and the value."""
    for key, value in nested.items():
        yield from ([key, *row] for row in _leaves(value)) if isinstance(value, Mapping) else [[key, value]]
