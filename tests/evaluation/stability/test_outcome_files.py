"""The table of all outcomes, row by row against the array, under names of every kind."""

import csv
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from headstart.contract.tables.table import TransferTable
from headstart.evaluation.stability import study as studies
from headstart.evaluation.stability.outcome_files import FILE, open_outcomes
from headstart.evaluation.stability.study import pool_outcomes, run_study
from headstart.metrics.ranking.pools import Pools
from headstart.metrics.ranking.ranking_measures import MEASURES

SOURCES = ["plain", "with; semicolon", 'with "quotes"', "with, comma", "naïve 方法"]
# A name that spreadsheets take for a formula is written with an apostrophe.
WRITTEN = {"=1+1": "'=1+1", "@here": "'@here"}


@pytest.fixture
def table() -> TransferTable:
    """Build a table whose first source is a target, too, with few values, so that there are ties and constants."""
    generator = np.random.default_rng(0)
    scores = generator.integers(3, size=(3, 5, 3)).astype(float)
    performances = 1 + generator.integers(3, size=(5, 3)).astype(float)
    targets = ["plain", "far; off", "@here"]
    own = np.zeros((5, 3), dtype=np.bool_)
    own[0, 0] = True
    return TransferTable.complete(["=1+1", "m1", "m,2"], SOURCES, targets, scores, performances, own)


def split(text: str) -> list[str]:
    return next(csv.reader([text], delimiter=";"), [])


def test_every_experiment_has_its_row(table: TransferTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studies, "BLOCK", 4)
    for name in ("one", "other"):
        with open_outcomes(tmp_path / name / FILE, table) as write_block:
            run_study(table, Pools(5, 3), write_block)
    assert (tmp_path / "one" / FILE).read_bytes() == (tmp_path / "other" / FILE).read_bytes()
    metrics = [WRITTEN.get(name, name) for name in table.metrics]
    frame = pd.read_csv(tmp_path / "one" / FILE, keep_default_na=False, na_values=dict.fromkeys(metrics, ""))
    assert list(frame.columns) == ["sources", "target", "measure", "winners", *metrics]

    pools = list(combinations(range(5), 3))
    rows, counts = iter(frame.itertuples(index=False)), {0: 0, 1: 0, 2: 0, 3: 0}
    for pool, outcomes in zip(pools, pool_outcomes(table, np.array(pools))[0], strict=True):
        names = [SOURCES[index] for index in pool]
        for target, by_measure in zip(table.targets, outcomes, strict=True):
            for measure, expected in zip(MEASURES, by_measure, strict=True) if target not in names else ():
                sources, written, measured, winners, *values = next(rows)
                assert (split(sources), written, measured) == (names, WRITTEN.get(target, target), measure)
                np.testing.assert_allclose(np.array(values, dtype=float), expected, rtol=1e-15)
                best = np.nanmax([*expected, -9]) - 1e-12
                assert split(winners) == [name for name, its in zip(metrics, expected, strict=True) if its >= best]
                counts[len(split(winners))] += 1
    assert next(rows, None) is None
    assert min(counts.values()) > 0, "some experiments have no winner, and some have all"


def test_a_study_that_ends_early_leaves_no_file(table: TransferTable, tmp_path: Path) -> None:
    def end_early() -> None:
        with open_outcomes(tmp_path / FILE, table) as write_block:
            write_block(np.zeros((1, 3), dtype=np.intp), np.zeros((1, 3, 4, 3)))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        end_early()
    assert not list(tmp_path.iterdir())
