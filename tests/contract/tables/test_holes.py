"""The largest part of a table without holes, against all parts, and what is said of holes."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from headstart.contract.tables import holes as module
from headstart.contract.tables.holes import largest_complete
from headstart.contract.tables.read_table import read_table, without_holes
from headstart.contract.tables.rows import TableLayout
from headstart.evaluation.stability.study import pool_outcomes
from headstart.metrics.ranking.ranking_measures import measure_pools
from headstart.output.errors import UserError
from headstart.tests.material.score_tables import make_table


def all_subsets(size: int) -> list[np.ndarray]:
    return [np.array(kept, dtype=bool) for kept in product([False, True], repeat=size)]


def test_the_largest_part_is_that_of_all_parts() -> None:
    for seed in range(20):
        generator = np.random.default_rng(seed)
        holes = generator.random((int(generator.integers(2, 8)), int(generator.integers(2, 6)))) < 0.25
        own = generator.random(holes.shape) < 0.1
        counted, holes = ~holes & ~own, holes & ~own
        part = largest_complete(holes, counted)
        assert part is not None
        parts = product(all_subsets(holes.shape[0]), all_subsets(holes.shape[1]))
        sizes = [(counted[np.ix_(*part)].sum(), part[1].sum()) for part in parts if not holes[np.ix_(*part)].any()]
        assert (counted[np.ix_(*part)].sum(), part[1].sum()) == max(sizes), seed
        assert not holes[np.ix_(*part)].any()


LINES = ["source,target,performance"] + [f"s{s},t{t},0.{1 + s * 3 + t}" for s in range(4) for t in range(3)]


def write(path: Path, *left_out: str) -> Path:
    path.write_text("\n".join(line for line in LINES if not line.startswith(left_out)))
    return path


def test_holes_are_completed_or_used_pairwise(tmp_path: Path) -> None:
    path = write(tmp_path / "table.csv", "s0,t2", "s1,t2")
    whole = read_table(path, TableLayout(missing="pairwise"), minimum=0)
    assert np.argwhere(whole.holes).tolist() == [[0, 2], [1, 2]]
    pairwise, complete = (without_holes(whole, missing, 0) for missing in ("pairwise", "complete"))
    assert pairwise.notes == [
        "2 of 12 cells are missing. 4 of 4 sources and 3 of 3 targets are used, and every target uses the sources that "
        "it has: from 2 (t2) to 4 (t0). Targets are thus compared on different sources."
    ]
    assert (complete.sources, complete.targets) == (whole.sources, ["t0", "t1"])
    assert complete.notes == [
        "The largest part without holes is used: 4 of 4 sources and 2 of 3 targets (without 't2'), 8 of 10 known cells."
    ]


def test_too_little_that_is_left_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "table.csv", "s0", "s1,t0", "s1,t1", "s2,t1", "s2,t2", "s3,t0", "s3,t2")
    whole = read_table(path, TableLayout(missing="complete"), minimum=0)
    with pytest.raises(UserError, match="missing: no two sources are complete on a target; take --missing=pairwise"):
        without_holes(whole, "complete", 0)
    monkeypatch.setattr(module, "MOST_TRIED", 0)
    with pytest.raises(UserError, match="missing: too many sources and targets have holes"):
        without_holes(whole, "complete", 0)


def test_targets_that_rank_nothing_are_named(tmp_path: Path) -> None:
    rows = ["source,own,target,performance", "a,x,x,1", "b,x,x,2", "c,y,x,3", "a,x,z,1", "b,x,z,2", "c,y,z,-3"]
    (tmp_path / "table.csv").write_text("\n".join(rows))
    table = without_holes(read_table(tmp_path / "table.csv", minimum=0), "refuse", 0)
    assert table.targets == ["z"]
    assert table.notes[-2] == "Left out, as there is nothing to rank: 'x'."
    assert table.notes[-1].startswith("Rel@1 is undefined, and left out, on targets with negative performances: z.")


def test_pools_use_the_sources_that_a_target_has() -> None:
    generator = np.random.default_rng(0)
    scores, performances = generator.normal(size=(2, 6, 3)), generator.uniform(size=(6, 3))
    table = make_table(scores, performances)
    table.own[0, 0] = table.known[0, 0] = table.known[1, 1] = table.known[2, 1] = False
    table.own[0, 0] = True
    pools = np.array([[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5]])
    outcomes, used = pool_outcomes(table, pools)
    assert used.tolist() == [[False, True, True], [True, True, True], [True, True, True]]
    for row, pool in enumerate(pools):
        for target in range(3):
            its = [source for source in pool if table.known[source, target]]
            if used[row, target]:
                at = np.array(its)
                expected = measure_pools(scores[:, at, target], performances[at, target], np.arange(len(its))[None])[0]
                np.testing.assert_allclose(outcomes[row, target], expected, atol=1e-12)
    assert np.isnan(outcomes[0, 0]).all()
