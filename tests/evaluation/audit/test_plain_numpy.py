"""The figures of an audit, computed a second time by plain lines of NumPy and SciPy."""

import os
import re
import warnings
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from headstart.evaluation.estimates import with_interval
from headstart.tests.material.root import ROOT, require_checkout
from headstart.tests.material.score_tables import make_table, number, run_audit, write_table

SHARED = Path(os.environ.get("HEADSTART_SHARED", ROOT.parent / "shared"))
PAPERS = SHARED / "data" / "stable_transfer"
# Metrics of the drawn table; the figures of the second one are compared.
METRICS = ["gbc", "log_me", "own"]
MEASURES = [stats.weightedtau, stats.kendalltau, stats.pearsonr, lambda x, y: (y[x.argmax()] / y.max(), None)]

Floats = NDArray[np.float64]


class PlainTable:
    """A table in the plain layout, and the mean ranks of its sources on the other targets."""

    def __init__(self, path: Path) -> None:
        rows = np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf-8")
        self.rows = rows[rows["source"] != rows["target"]]
        self.sources, self.i = np.unique(self.rows["source"], return_inverse=True)
        self.targets, self.j = np.unique(self.rows["target"], return_inverse=True)
        self.performance = np.full((len(self.sources), len(self.targets)), np.nan)
        self.performance[self.i, self.j] = self.rows["performance"]
        self.known = np.isfinite(self.performance)
        self.elsewhere = mean_ranks(self.performance)
        self.measured = self.weighted(self.elsewhere)

    def weighted(self, score: Floats) -> Floats:
        """Return the weighted Kendall of a ranker on every target."""
        return np.array([MEASURES[0](score[k, t], self.performance[k, t])[0] for t, k in enumerate(self.known.T)])

    def kendall(self, x: Floats, y: Floats) -> Floats:
        return np.array([stats.kendalltau(x[k, t], y[k, t]).statistic for t, k in enumerate(self.known.T)])

    def of_targets(self, values: Any) -> dict[str, Any]:
        return dict(zip(self.targets.tolist(), values, strict=True))

    def scores(self, metric: str) -> Floats:
        score, mine = np.full_like(self.performance, np.nan), self.rows["metric"] == metric
        score[self.i[mine], self.j[mine]] = self.rows["score"][mine]
        return score

    def resampled(self) -> tuple[Floats, Floats]:
        """Return how often each target is drawn, and the mean rank's values in 200 resamples of the targets."""
        count = len(self.targets)
        counts = np.random.default_rng((0, 0)).multinomial(count, np.full(count, 1 / count), 200)
        ranks = np.nan_to_num(stats.rankdata(-self.performance, axis=0, nan_policy="omit"))
        values = np.full(counts.shape, np.nan)

        for t, k in enumerate(self.known.T):
            others = np.where(np.arange(count) == t, 0, counts)
            drawn = -(others @ ranks.T / (others @ self.known.T))[:, k]
            values[:, t] = [stats.weightedtau(scores, self.performance[k, t]).statistic for scores in drawn]

        return counts.astype(float), values

    def half_width(self, values: Floats, counts: Floats) -> float:
        count = len(self.targets)
        error = np.sqrt(count / (count - 1)) * (counts * values).mean(axis=1).std(ddof=1)
        return float(stats.t.ppf(0.975, count - 1) * error)


def mean_ranks(performance: Floats) -> Floats:
    """Return the mean rank of every source on the other targets, 1 being the best, with the sign reversed."""
    ranks, known = stats.rankdata(-performance, axis=0, nan_policy="omit"), np.isfinite(performance)
    means: Floats = (np.nansum(ranks, axis=1, keepdims=True) - ranks) / (known.sum(axis=1, keepdims=True) - 1)
    return -means


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> tuple[PlainTable, dict[str, Any]]:
    """Return the plain table, and what the audit finds."""
    folder = tmp_path_factory.mktemp("audit")
    generator = np.random.default_rng(0)
    # 6 sources and 9 targets, of which one is a source; the order on targets is alike.
    performances = np.linspace(0.3, 0.8, 6)[:, None] + 0.15 * generator.normal(size=(6, 9))
    scores = performances + 0.2 * generator.normal(size=(3, 6, 9))
    table = make_table(scores, performances, metrics=METRICS, targets=["s1", *number("t", 8)])
    path = write_table(folder / "table.csv", table)
    return PlainTable(path), run_audit(path, folder / "out")


def test_the_mean_rank_with_its_interval_and_a_metric_by_every_measure(
    audit: tuple[PlainTable, dict[str, Any]],
) -> None:
    plain, document = audit
    summary = document["rankers"]["mean_rank"]["weighted_kendall"]
    mean, half = plain.measured.mean(), plain.half_width(*reversed(plain.resampled()))
    assert mean == pytest.approx(summary["mean"], abs=1e-12)
    assert np.clip([mean - half, mean + half], -1, 1) == pytest.approx(summary["ci95"], abs=1e-12)
    assert plain.of_targets(plain.measured) == pytest.approx(summary["per_target"], abs=1e-12)

    score = plain.scores("log_me")
    for name, measure in zip(["weighted_kendall", "kendall", "pearson", "rel_at_1"], MEASURES, strict=True):
        values = [measure(score[k, t], plain.performance[k, t])[0] for t, k in enumerate(plain.known.T)]
        per_target = document["rankers"]["log_me"][name]["per_target"]
        assert plain.of_targets(values) == pytest.approx(per_target, abs=1e-12)


def test_a_metric_beside_the_mean_rank(audit: tuple[PlainTable, dict[str, Any]]) -> None:
    plain, document = audit
    score = plain.scores("log_me")
    values = plain.weighted(score)
    counts, resampled = plain.resampled()
    difference, half = (values - plain.measured).mean(), plain.half_width(values - resampled, counts)
    expected = document["minus_mean_rank"]["log_me"]["weighted_kendall"]
    assert difference == pytest.approx(expected["mean"], abs=1e-12)
    assert [difference - half, difference + half] == pytest.approx(expected["ci95"], abs=1e-12)

    one, other = plain.kendall(score, plain.elsewhere), plain.kendall(plain.performance, plain.elsewhere)
    with warnings.catch_warnings():
        # It divides by 0 where nothing is left.
        warnings.simplefilter("ignore")
        given = (plain.kendall(score, plain.performance) - one * other) / np.sqrt((1 - one**2) * (1 - other**2))
    per_target = document["kendall_given_mean_rank"]["log_me"]["per_target"]
    defined = {target: value for target, value in per_target.items() if value is not None}
    assert len(defined) > 2
    values_there = plain.of_targets(given)
    assert {target: values_there[target] for target in defined} == pytest.approx(defined, abs=1e-12)


def test_the_agreement_of_targets(audit: tuple[PlainTable, dict[str, Any]]) -> None:
    plain, document = audit
    count, both = len(plain.targets), []
    for a, b in combinations(range(count), 2):
        both.append(plain.performance[plain.known[:, a] & plain.known[:, b]][:, [a, b]])
    rho = np.mean([stats.spearmanr(pair).statistic for pair in both])
    assert rho == pytest.approx(document["ranks"]["mean_spearman"], abs=1e-12)
    assert (1 + (count - 1) * rho) / count == pytest.approx(document["ranks"]["kendalls_w"], abs=1e-12)
    ranks = stats.rankdata(-plain.performance, axis=0, nan_policy="omit")
    for name, row in zip(plain.sources.tolist(), ranks, strict=True):
        its = document["ranks"]["sources"][name]
        expected = np.nanmean(row), np.nanstd(row, ddof=1), np.nanmin(row), np.nanmax(row)
        assert (its["mean"], its["standard_deviation"], its["best"], its["worst"]) == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.skipif(not PAPERS.is_dir(), reason="needs the tables of HEADSTART_SHARED, by default ../shared")
@pytest.mark.parametrize("table", ["source_datasets_table.csv", "source_model_architectures_table.csv"])
def test_the_page_has_the_figures_of_the_papers_tables(table: str, tmp_path: Path) -> None:
    require_checkout()
    document = run_audit(PAPERS / table, tmp_path / "out")
    first = 0 if table == "source_datasets_table.csv" else 2

    page = (ROOT / "docs" / "audit.md").read_text()
    for name, title in zip(document["metrics"], ["GBC", "LEEP", "N-LEEP", "LogME", "H-score"], strict=True):
        [row] = re.findall(rf"^\| {title} \| (.*) \|$", page, re.MULTILINE)
        less = document["minus_mean_rank"][name]["weighted_kendall"]
        expected = [with_interval(less), with_interval(document["kendall_given_mean_rank"][name])]
        assert row.split(" | ")[first : first + 2] == expected
