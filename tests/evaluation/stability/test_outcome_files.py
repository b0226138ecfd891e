"""Outcomes as CSV, row by row against the array, under names of every kind."""

import csv
import gzip
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.contract.tables.table import TransferTable
from headstart.evaluation.stability import study as studies
from headstart.evaluation.stability.outcome_files import OutcomeFile, open_outcomes
from headstart.evaluation.stability.study import run_study
from headstart.metrics.ranking.pools import Pools
from headstart.metrics.ranking.ranking_measures import MEASURES

SOURCES = ["plain", "with; semicolon", 'with "quotes"', "with, comma", "naïve 方法"]


@pytest.fixture
def table() -> TransferTable:
    """Build a table whose first source is a target, too, with few values, so that there are ties and constants."""
    generator = np.random.default_rng(0)
    scores = generator.integers(3, size=(3, 5, 3)).astype(float)
    performances = 1 + generator.integers(3, size=(5, 3)).astype(float)
    targets = ["plain", "far; off", "other"]
    own = np.zeros((5, 3), dtype=np.bool_)
    own[0, 0] = True
    return TransferTable.complete(["m0", "m1", "m,2"], SOURCES, targets, scores, performances, own)


def write(table: TransferTable, folder: Path, kind: OutcomeFile) -> None:
    folder.mkdir(exist_ok=True)
    with open_outcomes(folder, kind, table, Pools(5, 3), 1e-12) as write_block:
        run_study(table, Pools(5, 3), 1e-12, write_block)


def read(folder: Path) -> list[dict[str, Any]]:
    with gzip.open(folder / "outcomes.csv.gz", "rt", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_experiment_has_its_row(table: TransferTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studies, "BLOCK", 4)
    write(table, tmp_path, True)
    write(table, tmp_path, "csv")
    outcomes = np.load(tmp_path / "outcomes.npy")
    pools = [[SOURCES[index] for index in pool] for pool in combinations(range(5), 3)]
    rows = iter(read(tmp_path))
    undefined = tied = 0
    for pool, values in zip(pools, outcomes, strict=True):
        for target, by_measure in zip(table.targets, values, strict=True):
            if target in pool:
                assert np.isnan(by_measure).all()
                continue
            for measure, expected in zip(MEASURES, by_measure, strict=True):
                row = next(rows)
                [sources] = csv.reader([row["sources"]], delimiter=";")
                assert (sources, row["target"], row["measure"]) == (pool, target, measure)
                values = [float(row[name] or "nan") for name in table.metrics]
                np.testing.assert_array_equal(values, expected)
                best = [
                    name
                    for name, value in zip(table.metrics, expected, strict=True)
                    if value >= np.nanmax([*expected, -9]) - 1e-12
                ]
                [winners] = csv.reader([row["winners"]], delimiter=";") if row["winners"] else [[]]
                assert winners == best
                undefined, tied = undefined + (not best), tied + (len(best) > 1)
    assert next(rows, None) is None
    assert undefined > 0 < tied


def test_no_name_is_a_formula(table: TransferTable, tmp_path: Path) -> None:
    names = ["=1+1", "-2", "plain"]
    write(replace(table, metrics=names, targets=["@here", "far", "+"]), tmp_path, "csv")
    rows = read(tmp_path)
    assert {row["target"] for row in rows} == {"'@here", "far", "'+"}
    assert list(rows[0])[4:] == ["'=1+1", "'-2", "plain"]
    won = {name for row in rows for name in next(csv.reader([row["winners"]], delimiter=";"), [])}
    assert won == {"'=1+1", "'-2", "plain"}


def test_the_same_outcomes_are_the_same_bytes(table: TransferTable, tmp_path: Path) -> None:
    for name in ("one", "other"):
        write(table, tmp_path / name, "csv")
    one, other = ((tmp_path / name / "outcomes.csv.gz").read_bytes() for name in ("one", "other"))
    assert one == other


@pytest.mark.parametrize("kind", [True, "csv"])
def test_a_study_that_ends_early_leaves_no_file(table: TransferTable, tmp_path: Path, kind: OutcomeFile) -> None:
    def end_early() -> None:
        with open_outcomes(tmp_path, kind, table, Pools(5, 3), 1e-12) as write_block:
            write_block(np.zeros((1, 3), dtype=np.intp), np.zeros((1, 3, 4, 3)))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        end_early()
    assert not list(tmp_path.iterdir())


def test_nothing_is_written_unasked(table: TransferTable, tmp_path: Path) -> None:
    write(table, tmp_path, False)
    assert not list(tmp_path.iterdir())
